//go:build !volcano1.13

// Ascend NPUs, for the releases that have them: those from 1.14.0 on.
package main

import (
	"fmt"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"

	"volcano.sh/volcano/pkg/scheduler/api"
	"volcano.sh/volcano/pkg/scheduler/api/devices/ascend/hami"
	"volcano.sh/volcano/pkg/scheduler/api/devices/ascend/mindcluster/ascend310p/vnpu"
)

// skipsNil tells that deviceshare does not ask a device that is nil.
const skipsNil = true

// aiCPUs are those of a chip of Ascend 310P.
const aiCPUs = 7

func enableNPUs(family string) {
	hami.AscendHAMiVNPUEnable = family == "ascend"
	vnpu.AscendMindClusterVNPUEnable = family == "mindcluster"
}

func npusOf(family string, node *v1.Node) []device {
	if family == "mindcluster" {
		return []device{chipsOf(node)}
	}
	var found []device
	for _, each := range hami.NewAscendDevices(node.Name, node) {
		found = append(found, each)
	}
	return found
}

// ignoredNames makes the scheduler ignore what the devices of the nodes say that it is to ignore.
func ignoredNames(read *fleet) func() {
	var names []string
	for _, node := range read.Nodes {
		if read.Family == "ascend" {
			for _, each := range hami.NewAscendDevices(node.Name, node) {
				names = append(names, each.GetIgnoredDevices()...)
			}
		}
	}
	return func() { api.IgnoredDevicesList.Set(names) }
}

// chipsOf is the device of a node on which MindCluster's ConfigMap lists every chip as healthy.
func chipsOf(node *v1.Node) *vnpu.NPUDevices {
	found := vnpu.NewNPUDevices(node.Name, node)
	found.Idle = api.NewResource(node.Status.Allocatable).ScalarResources
	cores := node.Status.Capacity[vnpu.AscendNPUCore]
	found.ServerType = node.Labels[vnpu.ServerType]
	parts := strings.Split(found.ServerType, "-")
	if len(parts) < 2 {
		return found
	}
	size, err := strconv.Atoi(parts[1])
	if err != nil || size == 0 || cores.Value() == 0 || int(cores.Value())%size != 0 {
		return found
	}
	found.ChipKind, found.ChipType = vnpu.Ascend310P, vnpu.Ascend310P
	found.AiCorePerChip = size
	found.TotalChipNum = int(cores.Value()) / size
	found.TotalRes = vnpu.VResource{Aicore: int(cores.Value()), Aicpu: aiCPUs * found.TotalChipNum, DVPP: vnpu.AscendDVPPEnabledOff}
	for id := range found.TotalChipNum {
		whole := vnpu.VResource{Aicore: size, Aicpu: aiCPUs, DVPP: vnpu.AscendDVPPEnabledOff}
		chip := &vnpu.VChip{
			PodMap:   map[string]*v1.Pod{},
			Name:     fmt.Sprintf("%s-%d", vnpu.Ascend310P, id),
			Kind:     vnpu.Ascend310P,
			CoreNum:  size,
			TotalRes: whole,
			FreeRes:  whole,
			UsedRes:  vnpu.VResource{DVPP: vnpu.AscendDVPPEnabledOff},
		}
		chip.FreeRes.DVPP = vnpu.AscendDVPPEnabledOn
		found.Chips[id] = chip
	}
	found.ValidVNode = true
	return found
}

// allocates tells whether the chips that a pod needs are found when it is bound, which the filter of MindCluster does not ask.
func allocates(asked device, pod *v1.Pod) bool {
	chips, is := asked.(*vnpu.NPUDevices)
	if !is {
		return true
	}
	wanted, err := chips.GetPodResource(pod)
	if err != nil {
		return false
	}
	_, err = chips.SelectChipFromNode(wanted)
	return err == nil
}
