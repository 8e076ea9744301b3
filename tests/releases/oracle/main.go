// The verdicts of a release of Volcano: which pods does its allocation code place on an empty node?
//
// Copied into cmd/ of a checkout of volcano-sh/volcano and built there, so that it is the release's own code that runs. Reads
// one JSON object a line, {"deviceConfig", "policies", "nodes", "pods"}, and answers each with one line: a list with true for
// each pod that some node takes under one of the policies, the values of deviceshare.SchedulePolicy.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"log"
	"os"
	"slices"

	"gopkg.in/yaml.v2"
	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"volcano.sh/volcano/pkg/scheduler/api"
	"volcano.sh/volcano/pkg/scheduler/api/devices/config"
	"volcano.sh/volcano/pkg/scheduler/api/devices/nvidia/vgpu"
)

type fleet struct {
	DeviceConfig json.RawMessage `json:"deviceConfig"`
	Policies     []string        `json:"policies"`
	Nodes        []*v1.Node      `json:"nodes"`
	Pods         []*v1.Pod       `json:"pods"`
}

// fits tells whether the allocatable resources of a node suffice, and its cards in the order of one of the policies.
func fits(pod *v1.Pod, node *v1.Node, policies []string) bool {
	if !api.NewTaskInfo(pod).InitResreq.LessEqual(api.NewResource(node.Status.Allocatable), api.Zero) {
		return false
	}
	for _, policy := range policies {
		cards := vgpu.NewGPUDevices(node.Name, node) // a new one each time: older releases change it
		if cards == nil {
			return false
		}
		if code, _, err := cards.FilterNode(pod, policy); code == 0 && err == nil {
			return true
		}
	}
	return false
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
	vgpu.VGPUEnable = true
	config.InitDevicesConfig("none", "none") // without a cluster: the default, which each fleet then replaces
	input, output := json.NewDecoder(bufio.NewReader(os.Stdin)), json.NewEncoder(os.Stdout)
	for input.More() {
		var read fleet
		if err := input.Decode(&read); err != nil {
			log.Fatal(err)
		}
		*config.GetConfig() = config.Config{}
		if err := yaml.Unmarshal(read.DeviceConfig, config.GetConfig()); err != nil {
			log.Fatal(err)
		}
		verdicts := make([]bool, len(read.Pods))
		for index, pod := range read.Pods {
			verdicts[index] = slices.ContainsFunc(read.Nodes, func(node *v1.Node) bool { return fits(pod, node, read.Policies) })
		}
		if err := output.Encode(verdicts); err != nil {
			log.Fatal(err)
		}
	}
}
