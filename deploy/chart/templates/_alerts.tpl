{{/*
Prometheus' rules: those of alerts.yaml, and alerts on the objectives of the values by several burn rates in two windows
each, as in Google's SRE workbook, "Alerting on SLOs". A burn rate of 1 spends in 30 days just what the objective allows.
Each objective has a share of bad events (`bad` of `all`), recorded for each window. The alerts for now need ten bad
events besides: without that, one failed review of a quiet night would be all that there were.
*/}}
{{- define "gateway.rules" -}}
{{- $values := .Values.monitoring.prometheusRule }}
{{- $objectives := $values.objectives }}
{{- $seconds := $objectives.latency.seconds | toString }}
{{- $bound := regexMatch "[.]" $seconds | ternary $seconds (printf "%s.0" $seconds) }}
{{- $duration := "admission_gateway_review_duration_seconds" }}
{{- $indicators := list
  (dict "objective" "availability" "percent" $objectives.availability
    "alert" "AdmissionAvailabilityBurnRate" "name" "job_phase:admission_gateway_reviews:failed_ratio"
    "bad" `sum by (job, phase) (%[1]s(admission_gateway_reviews_total{outcome="failed"}[%[2]s]))`
    "all" "sum by (job, phase) (%[1]s(admission_gateway_reviews_total[%[2]s]))"
    "summary" "of {{ $labels.phase }} reviews failed")
  (dict "objective" "latency" "percent" $objectives.latency.percent
    "alert" "AdmissionLatencyBurnRate" "name" (printf "job_phase:%s:slow_ratio" $duration)
    "bad" (printf "(sum by (job, phase) (%%[1]s(%s_count[%%[2]s])) - sum by (job, phase) (%%[1]s(%s_bucket{le=%q}[%%[2]s])))" $duration $duration $bound)
    "all" (printf "sum by (job, phase) (%%[1]s(%s_count[%%[2]s]))" $duration)
    "summary" (printf "of {{ $labels.phase }} reviews took longer than %ss" $seconds))
  (dict "objective" "policies" "percent" $objectives.policies
    "alert" "AdmissionPolicyBurnRate" "name" "job_phase_policy:admission_gateway_policy_verdicts:failure_ratio"
    "bad" `sum by (job, phase, policy) (%[1]s(admission_gateway_policy_verdicts_total{verdict="failure"}[%[2]s]))`
    "all" "sum by (job, phase, policy) (%[1]s(admission_gateway_policy_verdicts_total[%[2]s]))"
    "summary" "of the verdicts of {{ $labels.policy }} are failures")
-}}
groups:
{{- range $group := list
  (dict "name" "admission-gateway-objectives" "interval" "30s" "windows" (list "5m" "30m" "1h" "6h"))
  (dict "name" "admission-gateway-objectives-slow" "interval" "2m" "windows" (list "2h" "1d" "3d"))
}}
- name: {{ $group.name }}
  interval: {{ $group.interval }}
  rules:
  {{- range $indicator := $indicators }}
  {{- range $window := $group.windows }}
  - record: {{ $indicator.name }}_rate{{ $window }}
    expr: {{ printf "%s / %s" (printf $indicator.bad "rate" $window) (printf $indicator.all "rate" $window) | quote }}
  {{- end }}
  {{- end }}
{{- end }}
- name: admission-gateway-burn-rates
  rules:
  {{- range $indicator := $indicators }}
  - record: admission_gateway:objective_ratio
    expr: vector({{ $indicator.percent }} / 100)
    labels: {objective: {{ $indicator.objective }}}
  {{- range $rate := list
    (dict "factor" "14.4" "long" "1h" "short" "5m" "severity" "page")
    (dict "factor" "6" "long" "6h" "short" "30m" "severity" "page")
    (dict "factor" "3" "long" "1d" "short" "2h" "severity" "ticket")
    (dict "factor" "1" "long" "3d" "short" "6h" "severity" "ticket")
  }}
  {{- $limit := printf "%s * (1 - %v / 100)" $rate.factor $indicator.percent }}
  - alert: {{ $indicator.alert }}
    expr: |-
      {{ $indicator.name }}_rate{{ $rate.long }} > {{ $limit }}
      and {{ $indicator.name }}_rate{{ $rate.short }} > {{ $limit }}
      {{- if eq $rate.severity "page" }}
      and {{ printf $indicator.bad "increase" $rate.long }} >= 10
      {{- end }}
    labels: {severity: {{ $rate.severity }}, window: {{ $rate.long }}}
    annotations:
      summary: {{ printf "{{ $value | humanizePercentage }} %s in %s; the objective allows %v%%" $indicator.summary $rate.long (subf 100 $indicator.percent) | quote }}
      runbook_url: {{ printf "%s#%s" $values.runbooks (lower $indicator.alert) | quote }}
  {{- end }}
  {{- end }}
{{- range $group := (.Files.Get "alerts.yaml" | fromYaml).groups }}
- name: {{ $group.name }}
  rules:
  {{- range $rule := $group.rules }}
  {{- $_ := set $rule.annotations "runbook_url" (printf "%s#%s" $values.runbooks (lower $rule.alert)) }}
  {{- list $rule | toYaml | nindent 2 }}
  {{- end }}
{{- end }}
{{- end -}}
