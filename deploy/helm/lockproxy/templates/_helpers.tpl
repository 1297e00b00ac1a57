{{- define "lockproxy.labels" -}}
app.kubernetes.io/name: lockproxy
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "lockproxy.proxies" -}}
app.kubernetes.io/name: lockproxy
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: proxy
{{- end }}

{{- define "lockproxy.masters" -}}
app.kubernetes.io/name: lockproxy
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: master
{{- end }}

{{- define "lockproxy.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* The masters' addresses, one a line. A pod of a StatefulSet keeps its name when it moves, so the names are the list. */}}
{{- define "lockproxy.addresses" -}}
{{- if .Values.masters.enabled }}
{{- if .Values.masterAddresses }}{{ fail "masterAddresses and masters.enabled: set one of the two" }}{{ end }}
{{- if not .Values.passwords.masters }}{{ fail "passwords.masters: name the Secret with the masters' password" }}{{ end }}
{{- range $i := until (int .Values.masters.replicas) }}
- {{ $.Release.Name }}-master-{{ $i }}.{{ $.Release.Name }}-masters.{{ $.Release.Namespace }}.svc:6379
{{- end }}
{{- else }}
{{- if not .Values.masterAddresses }}{{ fail "masterAddresses: name the masters, three or five of them, or set masters.enabled" }}{{ end }}
{{- range .Values.masterAddresses }}
- {{ . | quote }}
{{- end }}
{{- end }}
{{- end }}

{{/* How pods keep away from one another, of the component that is given. */}}
{{- define "lockproxy.spread" -}}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: {{ .root.Values.topologyKey }}
    whenUnsatisfiable: {{ if eq .root.Values.spread "hard" }}DoNotSchedule{{ else }}ScheduleAnyway{{ end }}
    labelSelector:
      matchLabels: {{- include .component .root | nindent 8 }}
{{- if eq .root.Values.spread "hard" }}
affinity:
  podAntiAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
      - topologyKey: {{ .root.Values.topologyKey }}
        labelSelector:
          matchLabels: {{- include .component .root | nindent 12 }}
{{- end }}
{{- end }}

{{/* What every pod may not do. */}}
{{- define "lockproxy.podSecurity" -}}
runAsNonRoot: true
runAsUser: {{ . }}
runAsGroup: {{ . }}
fsGroup: {{ . }}
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "lockproxy.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}
