{{- define "ladon.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "ladon.fullname" -}}
{{- $name := include "ladon.name" . }}
{{- if contains $name .Release.Name }}{{ .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}{{ printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "ladon.selector" -}}
app.kubernetes.io/name: {{ include "ladon.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "ladon.labels" -}}
{{ include "ladon.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- /* Whether there is a port without TLS. */ -}}
{{- define "ladon.plain" -}}
{{- if not (and .Values.tls.enabled .Values.tls.only) }}yes{{ end }}
{{- end }}
