{{/* The release's name, which need not say the chart's twice. */}}
{{- define "gateway.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* What never changes of a component: (list $ "gateway"). */}}
{{- define "gateway.selector" -}}
app.kubernetes.io/name: {{ (index . 0).Chart.Name }}
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{- define "gateway.labels" -}}
{{ include "gateway.selector" . }}
app.kubernetes.io/version: {{ (index . 0).Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ (index . 0).Release.Service }}
helm.sh/chart: {{ printf "%s-%s" (index . 0).Chart.Name (index . 0).Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* The metadata of an object: (list $ component name). */}}
{{- define "gateway.metadata" -}}
name: {{ index . 2 }}
namespace: {{ (index . 0).Release.Namespace }}
labels:
  {{- include "gateway.labels" . | nindent 2 }}
{{- end -}}

{{/* The same of an object outside of namespaces. */}}
{{- define "gateway.clusterMetadata" -}}
name: {{ index . 2 | quote }}
labels:
  {{- include "gateway.labels" . | nindent 2 }}
{{- end -}}

{{- define "gateway.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}{{ .repository }}@{{ .digest }}{{- else -}}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{- end -}}
{{- end -}}
{{- end -}}

{{- define "gateway.tlsSecret" -}}
{{- .Values.tls.existingSecret | default (printf "%s-tls" (include "gateway.fullname" .)) -}}
{{- end -}}

{{/* "true" if the gateway keeps the certificate itself, with a CA of its own. */}}
{{- define "gateway.ownCertificate" -}}
{{- if and .Values.cluster.enabled (not .Values.tls.existingSecret) (not .Values.tls.certManager.enabled) -}}true
{{- end -}}
{{- end -}}

{{/* "true" if the chart has a ConfigMap of policies. Without any other source, an empty one. */}}
{{- define "gateway.ownPolicies" -}}
{{- if or .Values.policies .Values.workers -}}true
{{- else if not (or .Values.existingPolicies (and .Values.cluster.enabled .Values.cluster.policies)) -}}true
{{- end -}}
{{- end -}}

{{/* "true" if hooks of this worker have rules, and so a service account of their own. */}}
{{- define "gateway.hooksUseTheApi" -}}
{{- if and .hooks (or .hooks.clusterRole .hooks.roles) -}}true
{{- end -}}
{{- end -}}

{{/* The service account's credentials, where clients look for them. */}}
{{- define "gateway.tokenMount" -}}
{name: token, mountPath: /var/run/secrets/kubernetes.io/serviceaccount, readOnly: true}
{{- end -}}

{{- define "gateway.tokenVolume" -}}
name: token
projected:
  defaultMode: 0440
  sources:
  - serviceAccountToken: {path: token, expirationSeconds: 3600}
  - configMap: {name: kube-root-ca.crt, items: [{key: ca.crt, path: ca.crt}]}
  - downwardAPI: {items: [{path: namespace, fieldRef: {fieldPath: metadata.namespace}}]}
{{- end -}}

{{/* Pods of all components: Pod Security's level `restricted`. */}}
{{- define "gateway.podSecurity" -}}
automountServiceAccountToken: false
enableServiceLinks: false  # a Service's variables could be read as flags of ours
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "gateway.containerSecurity" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end -}}

{{/* Apart, if there is room for that; each version by itself, or old pods would push new ones together. */}}
{{- define "gateway.spread" -}}
topologySpreadConstraints:
{{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
- maxSkew: 1
  topologyKey: {{ . }}
  whenUnsatisfiable: ScheduleAnyway
  matchLabelKeys: [pod-template-hash]
  labelSelector:
    matchLabels:
      {{- include "gateway.selector" $ | nindent 6 }}
{{- end }}
{{- end -}}
