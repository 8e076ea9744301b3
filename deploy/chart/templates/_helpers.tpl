{{/* Labels, and annotations if there are any. Takes root; optional: component, more labels, more annotations. */}}
{{- define "vgpu-webhook.metadata" -}}
labels:
  app.kubernetes.io/name: vgpu-webhook
  app.kubernetes.io/part-of: vgpu-webhook
  {{- with .component }}
  app.kubernetes.io/component: {{ . }}
  {{- end }}
  {{- with merge dict (.labels | default dict) .root.Values.commonLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with merge dict (.annotations | default dict) .root.Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "vgpu-webhook.selector" -}}
app.kubernetes.io/name: vgpu-webhook
app.kubernetes.io/component: admission
{{- end }}

{{/* What the pods of the Deployment and of the Jobs have in common. */}}
{{- define "vgpu-webhook.pod" -}}
nodeSelector:
  {{- toYaml .Values.nodeSelector | nindent 2 }}
tolerations:
  {{- toYaml .Values.tolerations | nindent 2 }}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* What all containers have in common. */}}
{{- define "vgpu-webhook.container" -}}
{{- with .Values.image -}}
image: {{ .repository }}{{ with .digest }}@{{ . }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
imagePullPolicy: {{ .pullPolicy }}
{{- end }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{/* The user, unless something else chooses it, such as OpenShift. */}}
{{- define "vgpu-webhook.security-context" -}}
runAsNonRoot: true
{{- range $key := .keys }}
{{- with get $.root.Values.podSecurityContext $key }}
{{ $key }}: {{ int64 . }}
{{- end }}
{{- end }}
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{/* The whole field, for a container with no other variables. */}}
{{- define "vgpu-webhook.env" -}}
{{- with .Values.extraEnv }}
env:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* The size of the volume for the audit log and the file before it: twice what these may have. */}}
{{- define "vgpu-webhook.audit-volume" -}}
{{- $size := "1Gi" }}
{{- range .Values.extraArgs }}
{{- if hasPrefix "--audit-max-bytes=" . }}
{{- $most := trimPrefix "--audit-max-bytes=" . }}
{{- if not (regexMatch "^[1-9][0-9]{0,14}[A-Za-z]{0,2}$" $most) }}
{{- fail (printf "extraArgs has %s, but the kubelet evicts a replica whose volume is full: give a whole number, such as --audit-max-bytes=1Gi" .) }}
{{- end }}
{{- $size = printf "%d%s" (mul 4 (regexFind "^[0-9]+" $most)) (regexFind "[A-Za-z]*$" $most) }}
{{- end }}
{{- end }}
{{- $size }}
{{- end }}

{{/* Where `serve` and `console` read the cluster's settings. */}}
{{- define "vgpu-webhook.settings" -}}
- --cluster
- --policy-map
- vgpu-webhook-policy
{{- with .Values.deviceConfig }}
{{- if ne .name "volcano-vgpu-device-config" }}
- --device-config-map={{ .name }}
{{- end }}
{{- range .namespaces }}
- --device-config-namespace={{ . }}
{{- end }}
{{- end }}
{{- end }}

{{- define "vgpu-webhook.tls-secret" -}}
{{- with .Values.certificates }}{{ eq .source "secret" | ternary .secret.name "vgpu-webhook-tls" }}{{ end }}
{{- end }}

{{- define "vgpu-webhook.priority-class" -}}
{{- $class := .Values.priorityClassName | default "system-cluster-critical" }}
{{- ternary "" $class (eq $class "none") }}
{{- end }}

{{/* The policy in use, as YAML: an object or a text, with the enforcement of the values. */}}
{{- define "vgpu-webhook.policy" -}}
{{- $policy := .Values.policy | default dict }}
{{- if kindIs "string" .Values.policy }}
{{- if not (regexReplaceAll "(?m)^\\s*(#.*|---|null|~)?$" .Values.policy "" | trim) }}
{{- fail "the value policy is an empty text, as a failed template leaves it: write {} for the defaults, or leave the value out" }}
{{- end }}
{{- $policy = fromYaml $policy }}
{{- with $policy.Error }}
{{- fail (printf "the value policy is not YAML: %s" .) }}
{{- end }}
{{- end }}
{{- if and .Values.enforcement (hasKey $policy "enforcement") }}
{{- fail "the value policy already sets the enforcement: set enforcement there, or leave it out of the policy" }}
{{- end }}
{{- with .Values.enforcement }}
{{- $policy = set (deepCopy $policy) "enforcement" . }}
{{- end }}
{{- toYaml $policy }}
{{- end }}

{{/* Fails if a text that replaces a file of the chart is not what `vgpu-webhook manifests` prints, but empty or of other kinds. */}}
{{- define "vgpu-webhook.require-kinds" -}}
{{- range .kinds }}
{{- if not (regexMatch (printf "(?m)^kind: %s\\s*$" .) $.text) }}
{{- fail (printf "the value %s has no %s: pass all that `vgpu-webhook manifests` prints, or leave the value out" $.value .) }}
{{- end }}
{{- end }}
{{- end }}

{{/* Not empty if the policy has the rule about quotas on somewhere: only then are ResourceQuotas read. */}}
{{- define "vgpu-webhook.reads-quotas" -}}
{{- $policy := include "vgpu-webhook.policy" . | fromYaml }}
{{- $levels := list (dig "rules" "quota-memory" "audit" $policy) }}
{{- range $policy.namespaces }}
{{- $levels = append $levels (dig "rules" "quota-memory" "off" .) }}
{{- end }}
{{- range $levels }}
{{- if not (has (toString .) (list "off" "false")) }}yes{{ end }}
{{- end }}
{{- end }}

{{/* Whether the policy translates a dialect in some namespace. */}}
{{- define "vgpu-webhook.translates-dialects" -}}
{{- $policy := include "vgpu-webhook.policy" . | fromYaml }}
{{- range prepend ($policy.namespaces | default list) $policy }}
{{- range $dialect, $use := .dialects }}
{{- if eq (toString $use) "translate" }}yes{{ end }}
{{- end }}
{{- end }}
{{- end }}

{{/* Whether the policy refuses pods that expose a device and request none: then they are also refused while no replica answers. */}}
{{- define "vgpu-webhook.denies-exposed" -}}
{{- $policy := include "vgpu-webhook.policy" . | fromYaml }}
{{- range prepend ($policy.namespaces | default list) $policy }}
{{- if eq (toString (get (.rules | default dict) "visible-devices")) "deny" }}yes{{ end }}
{{- end }}
{{- end }}

{{/* The namespaces for which the API server never calls the webhook. */}}
{{- define "vgpu-webhook.excluded-namespaces" -}}
{{- concat (list "kube-system") .Values.excludedNamespaces | uniq | toYaml }}
{{- end }}

{{/* The namespaces for which the API server calls the webhook: takes root, and the first expression as printed. */}}
{{- define "vgpu-webhook.namespace-selector" -}}
matchExpressions:
  - {{ set .printed "values" (include "vgpu-webhook.excluded-namespaces" .root | fromYamlArray) | toJson }}
  {{- range $key, $values := .root.Values.excludedNamespaceLabels }}
  {{- with $values }}
  - {key: {{ $key }}, operator: NotIn, values: {{ toJson . }}}
  {{- else }}
  - {key: {{ $key }}, operator: DoesNotExist}
  {{- end }}
  {{- end }}
{{- end }}
