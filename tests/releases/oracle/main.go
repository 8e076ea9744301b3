// The verdicts of a release of Volcano: what does its allocation code do with a pod on empty nodes?
//
// Reads one JSON object a line, {"family", "deviceConfig", "policies", "nodes", "pods"}, and answers each with one line: for each
// pod "placed" if some node gives it its devices under one of the policies, the values of deviceshare.SchedulePolicy; "skipped" if
// no node does, but deviceshare asks no device on some node whose plain resources suffice, so that the pod is bound there without
// devices; else "refused". The family is vgpu, gpushare-memory, gpushare-number, ascend or mindcluster.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"log"
	"os"
	"reflect"

	"gopkg.in/yaml.v2"
	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"volcano.sh/volcano/pkg/scheduler/api"
	"volcano.sh/volcano/pkg/scheduler/api/devices/config"
	"volcano.sh/volcano/pkg/scheduler/api/devices/nvidia/gpushare"
	"volcano.sh/volcano/pkg/scheduler/api/devices/nvidia/vgpu"
)

const (
	placed  = "placed"
	skipped = "skipped"
	refused = "refused"
)

// walks is how often a device is asked that looks at its cards in a random order, as Go's maps have it.
const walks = 64

type fleet struct {
	Family       string          `json:"family"`
	DeviceConfig json.RawMessage `json:"deviceConfig"`
	Policies     []string        `json:"policies"`
	Nodes        []*v1.Node      `json:"nodes"`
	Pods         []*v1.Pod       `json:"pods"`
}

// device is what deviceshare asks; every release has more methods, some with other results.
type device interface {
	HasDeviceRequest(pod *v1.Pod) bool
	FilterNode(pod *v1.Pod, policy string) (int, string, error)
}

// enable switches on the devices of a family, as the arguments of deviceshare do.
func enable(family string) {
	vgpu.VGPUEnable = family == "vgpu"
	gpushare.GpuSharingEnable = family == "gpushare-memory"
	gpushare.GpuNumberEnable = family == "gpushare-number"
	enableNPUs(family)
}

// devicesOf are the devices of a family on a node, made anew: older releases change them. Nil ones count: with a register that
// cannot be used there is a device object that is nil.
func devicesOf(family string, node *v1.Node) []device {
	switch family {
	case "vgpu":
		return []device{vgpu.NewGPUDevices(node.Name, node)}
	case "gpushare-memory", "gpushare-number":
		return []device{gpushare.NewGPUDevices(node.Name, node)}
	}
	return npusOf(family, node)
}

// ask does what the predicate of deviceshare does on one node.
func ask(read *fleet, pod *v1.Pod, node *v1.Node) string {
	verdict := refused
	for _, policy := range read.Policies {
		for range walks {
			switch answer := once(read.Family, pod, node, policy); answer {
			case placed:
				return placed
			case skipped:
				verdict = skipped
			}
			if read.Family != "ascend" {
				break // in a fixed order
			}
		}
	}
	return verdict
}

func once(family string, pod *v1.Pod, node *v1.Node, policy string) string {
	verdict := skipped
	for _, each := range devicesOf(family, node) {
		if reflect.ValueOf(each).IsNil() {
			if !skipsNil && each.HasDeviceRequest(pod) {
				return refused
			}
			continue
		}
		if !each.HasDeviceRequest(pod) {
			continue
		}
		if code, _, err := each.FilterNode(pod, policy); code != 0 || err != nil || !allocates(each, pod) {
			return refused
		}
		verdict = placed
	}
	return verdict
}

// judge tells the best that a node does with a pod, of those whose allocatable resources suffice.
func judge(read *fleet, pod *v1.Pod, ignored func()) string {
	verdict := refused
	for _, node := range read.Nodes {
		ignored()
		if !api.NewTaskInfo(pod).InitResreq.LessEqual(api.NewResource(node.Status.Allocatable), api.Zero) {
			continue
		}
		switch ask(read, pod, node) {
		case placed:
			return placed
		case skipped:
			verdict = skipped
		}
	}
	return verdict
}

// silence keeps klog from printing a line for each card that does not fit.
func silence() {
	flags := flag.NewFlagSet("klog", flag.PanicOnError)
	klog.InitFlags(flags)
	for name, value := range map[string]string{"logtostderr": "false", "stderrthreshold": "FATAL"} {
		if err := flags.Set(name, value); err != nil {
			log.Fatal(err)
		}
	}
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		log.Fatal(err)
	}
	klog.SetOutput(null)
}

func main() {
	silence()
	config.InitDevicesConfig("none", "none") // without a cluster: the default, which each fleet then replaces
	input, output := json.NewDecoder(bufio.NewReader(os.Stdin)), json.NewEncoder(os.Stdout)
	for input.More() {
		var read fleet
		if err := input.Decode(&read); err != nil {
			log.Fatal(err)
		}
		enable(read.Family)
		*config.GetConfig() = config.Config{}
		if err := yaml.Unmarshal(read.DeviceConfig, config.GetConfig()); err != nil {
			log.Fatal(err)
		}
		ignored := ignoredNames(&read)
		verdicts := make([]string, len(read.Pods))
		for index, pod := range read.Pods {
			verdicts[index] = judge(&read, pod, ignored)
		}
		if err := output.Encode(verdicts); err != nil {
			log.Fatal(err)
		}
	}
}
