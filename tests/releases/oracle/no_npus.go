//go:build volcano1.13

// Releases before 1.14.0 serve no Ascend NPUs.
package main

import v1 "k8s.io/api/core/v1"

const skipsNil = false

func enableNPUs(string) {}

func npusOf(string, *v1.Node) []device { return nil }

func ignoredNames(*fleet) func() { return func() {} }

func allocates(device, *v1.Pod) bool { return true }
