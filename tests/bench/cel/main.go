// The cost of CEL expressions, evaluated by the API server's own library.
//
// Reads one JSON object a line, an admission request with the expressions that judge it: {"conditions", "variables", "validations",
// "request"}. Answers each with one line: for each condition, and for each validation with the variables that it reads, its cost
// in the units of the API server, the CPU time of an evaluation in µs, which includes the conversion of the object, its value, and
// its error, if any. The message of a validation is evaluated where the validation refuses, and counts with it. The API server
// evaluates all conditions, and validations only if every condition holds; so does this program.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"strings"
	"syscall"
	"time"

	celgo "github.com/google/cel-go/cel"
	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"
)

const (
	budget    = int64(1) << 60 // the real limits must not end a measurement
	measured  = 10 * time.Millisecond
	mostTurns = 50
)

var accepted = cel.OptionalVariableDeclarations{HasAuthorizer: true}

type named struct {
	Name       string `json:"name"`
	Expression string `json:"expression"`
}

// typed is an expression as the API server compiles it: what it may return depends on where it is.
type typed struct {
	named
	types []*celgo.Type
}

func (e *typed) GetName() string            { return e.Name }
func (e *typed) GetExpression() string      { return e.Expression }
func (e *typed) ReturnTypes() []*celgo.Type { return e.types }

type validation struct {
	Expression        string `json:"expression"`
	MessageExpression string `json:"messageExpression"`
}

type question struct {
	Conditions  []named                      `json:"conditions"`
	Variables   []named                      `json:"variables"`
	Validations []validation                 `json:"validations"`
	Request     admissionv1.AdmissionRequest `json:"request"`
}

type figure struct {
	Cost         int64   `json:"cost"`
	Microseconds float64 `json:"microseconds"`
	Value        any     `json:"value"`
	Error        string  `json:"error"`
}

type answer struct {
	Conditions  []figure `json:"conditions"`
	Validations []figure `json:"validations"`
}

// policy has the expressions of one question, compiled.
type policy struct {
	conditions  []cel.ConditionEvaluator
	validations []cel.ConditionEvaluator
	messages    []cel.ConditionEvaluator
}

func compile(asked question) policy {
	compiler, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		log.Fatal(err)
	}
	for _, each := range asked.Variables {
		variable := &typed{each, []*celgo.Type{celgo.AnyType, celgo.DynType}}
		if result := compiler.CompileAndStoreVariable(variable, accepted, environment.StoredExpressions); result.Error != nil {
			log.Fatalf("%s: %v", each.Name, result.Error)
		}
	}
	evaluator := func(expression named, returned *celgo.Type) cel.ConditionEvaluator {
		each := &typed{expression, []*celgo.Type{returned}}
		return compiler.CompileCondition([]cel.ExpressionAccessor{each}, accepted, environment.StoredExpressions)
	}
	var found policy
	for _, each := range asked.Conditions {
		found.conditions = append(found.conditions, evaluator(each, celgo.BoolType))
	}
	for _, each := range asked.Validations {
		found.validations = append(found.validations, evaluator(named{Expression: each.Expression}, celgo.BoolType))
		found.messages = append(found.messages, evaluator(named{Expression: each.MessageExpression}, celgo.StringType))
	}
	return found
}

// object is what the API server has: of a Go type where Kubernetes has one, which each evaluation converts.
func object(kind schema.GroupVersionKind, raw runtime.RawExtension) runtime.Object {
	if len(raw.Raw) == 0 || string(raw.Raw) == "null" {
		return nil
	}
	var found runtime.Object
	switch kind.Kind {
	case "Pod":
		found = &corev1.Pod{}
	case "Binding":
		found = &corev1.Binding{}
	case "Deployment":
		found = &appsv1.Deployment{}
	default:
		found = &unstructured.Unstructured{} // a custom resource
	}
	if err := json.Unmarshal(raw.Raw, found); err != nil {
		log.Fatal(err)
	}
	return found
}

func attributes(request admissionv1.AdmissionRequest) *admission.VersionedAttributes {
	kind := schema.GroupVersionKind(request.Kind)
	now, old := object(kind, request.Object), object(kind, request.OldObject)
	attributes := admission.NewAttributesRecord(now, old, kind, request.Namespace, request.Name,
		schema.GroupVersionResource(request.Resource), request.SubResource, admission.Operation(request.Operation), nil, false,
		&user.DefaultInfo{Name: request.UserInfo.Username, Groups: request.UserInfo.Groups})
	versioned := &admission.VersionedAttributes{Attributes: attributes, VersionedKind: kind}
	versioned.VersionedObject.Set(now)
	if old != nil {
		versioned.VersionedOldObject.Set(old)
	}
	return versioned
}

// cpu is the CPU time of this process, garbage collection included.
func cpu() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		log.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func measure(evaluator cel.ConditionEvaluator, attributes *admission.VersionedAttributes, request admissionv1.AdmissionRequest) figure {
	var found figure
	var turns int
	var spent time.Duration
	admissionRequest := cel.CreateAdmissionRequest(attributes.Attributes, request.Resource, request.Kind)
	for started := cpu(); turns == 0 || spent < measured && turns < mostTurns; turns++ {
		results, left, err := evaluator.ForInput(context.Background(), attributes, admissionRequest, cel.OptionalVariableBindings{}, nil, budget)
		spent = cpu() - started
		found.Cost = budget - left
		if err != nil {
			found.Error = err.Error()
		} else if results[0].Error != nil {
			found.Error = results[0].Error.Error()
		} else {
			found.Value = fmt.Sprint(results[0].EvalResult.Value())
		}
	}
	found.Microseconds = float64(spent.Nanoseconds()) / 1000 / float64(turns)
	return found
}

func (p policy) judge(asked question) answer {
	attributes := attributes(asked.Request)
	found, matches := answer{Conditions: []figure{}, Validations: []figure{}}, true
	for _, each := range p.conditions {
		one := measure(each, attributes, asked.Request)
		found.Conditions = append(found.Conditions, one)
		matches = matches && one.Value == "true"
	}
	for index, each := range p.validations {
		if !matches {
			break
		}
		one := measure(each, attributes, asked.Request)
		if one.Value == "false" {
			message := measure(p.messages[index], attributes, asked.Request)
			one.Cost, one.Microseconds, one.Error = one.Cost+message.Cost, one.Microseconds+message.Microseconds, message.Error
		}
		found.Validations = append(found.Validations, one)
	}
	return found
}

func main() {
	compiled := map[string]policy{}
	reader, writer := json.NewDecoder(bufio.NewReader(os.Stdin)), json.NewEncoder(os.Stdout)
	for reader.More() {
		var asked question
		if err := reader.Decode(&asked); err != nil {
			log.Fatal(err)
		}
		key := key(asked)
		if _, known := compiled[key]; !known {
			compiled[key] = compile(asked)
		}
		if err := writer.Encode(compiled[key].judge(asked)); err != nil {
			log.Fatal(err)
		}
	}
}

func key(asked question) string {
	var text strings.Builder
	for _, part := range []any{asked.Conditions, asked.Variables, asked.Validations} {
		if err := json.NewEncoder(&text).Encode(part); err != nil {
			log.Fatal(err)
		}
	}
	return text.String()
}
