// A plain admission webhook in Go, to compare with: it decodes a pod, sets the scheduler and a toleration, and answers with
// the difference as a JSON patch. It has no limits, no audit log and no metrics.
package main

import (
	"encoding/json"
	"flag"
	"io"
	"log"
	"net/http"

	"gomodules.xyz/jsonpatch/v2"
	admission "k8s.io/api/admission/v1"
	core "k8s.io/api/core/v1"
)

func mutate(writer http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	review := admission.AdmissionReview{}
	if err == nil {
		err = json.Unmarshal(body, &review)
	}
	pod := core.Pod{}
	if err == nil {
		err = json.Unmarshal(review.Request.Object.Raw, &pod)
	}
	if err != nil {
		http.Error(writer, err.Error(), http.StatusBadRequest)
		return
	}
	pod.Spec.SchedulerName = "volcano"
	pod.Spec.Tolerations = append(pod.Spec.Tolerations, core.Toleration{Key: "volcano.sh/gpu", Operator: core.TolerationOpExists})
	changed, _ := json.Marshal(pod)
	operations, err := jsonpatch.CreatePatch(review.Request.Object.Raw, changed)
	if err != nil {
		http.Error(writer, err.Error(), http.StatusInternalServerError)
		return
	}
	patch, _ := json.Marshal(operations)
	kind := admission.PatchTypeJSONPatch
	review.Response = &admission.AdmissionResponse{UID: review.Request.UID, Allowed: true, Patch: patch, PatchType: &kind}
	review.Request = nil
	writer.Header().Set("Content-Type", "application/json")
	answer, _ := json.Marshal(review)
	_, _ = writer.Write(answer)
}

func main() {
	bind := flag.String("bind", "127.0.0.1:8443", "HOST:PORT")
	certificate := flag.String("tls-cert", "", "PEM")
	key := flag.String("tls-key", "", "PEM")
	flag.Parse()
	http.HandleFunc("/mutate", mutate)
	log.Fatal(http.ListenAndServeTLS(*bind, *certificate, *key, nil))
}
