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
{{- .Values.priorityClassName | default (ternary "system-cluster-critical" "" .Values.highAvailability) }}
{{- end }}
