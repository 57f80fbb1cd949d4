{{- define "rapport.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* Labels that select the pods of all components, or with `component` those of one. */ -}}
{{- define "rapport.selector" -}}
app.kubernetes.io/name: {{ default .root.Chart.Name .root.Values.nameOverride | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
{{- with .component }}
app.kubernetes.io/component: {{ . }}
{{- end }}
{{- end -}}

{{- define "rapport.labels" -}}
{{ include "rapport.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end -}}

{{- define "rapport.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "rapport.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "rapport.image" -}}
{{- $image := index .root.Values.image .name -}}
{{- $repository := $image.repository -}}
{{- with .root.Values.image.registry }}{{ $repository = printf "%s/%s" (trimSuffix "/" .) $repository }}{{ end -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $repository $image.digest -}}
{{- else -}}
{{- printf "%s:%s" $repository (default .root.Chart.AppVersion $image.tag) -}}
{{- end -}}
{{- end -}}

{{- /* Whether clients of Kafka sign in with a password, with tokens, or use TLS; empty: no. */ -}}
{{- define "rapport.kafkaPassword" -}}
{{- if and (hasPrefix "SASL_" .Values.kafka.security) (ne .Values.kafka.mechanism "OAUTHBEARER") }}yes{{ end -}}
{{- end -}}
{{- define "rapport.kafkaTokens" -}}
{{- if and (hasPrefix "SASL_" .Values.kafka.security) (eq .Values.kafka.mechanism "OAUTHBEARER") }}yes{{ end -}}
{{- end -}}
{{- define "rapport.kafkaTls" -}}
{{- if has .Values.kafka.security (list "SSL" "SASL_SSL") }}yes{{ end -}}
{{- end -}}

{{- /* What a component reads of the secrets: entries of `secrets` by name, as JSON. */ -}}
{{- define "rapport.secretsOf" -}}
{{- $names := list "databasePassword" "databaseCa" -}}
{{- if ne .component "notifier" }}{{ $names = concat $names (list "masterKey" "pseudonymKey") }}{{ end -}}
{{- if has .component (list "worker" "web") -}}
{{- if include "rapport.kafkaPassword" .root }}{{ $names = append $names "kafkaPassword" }}{{ end -}}
{{- if include "rapport.kafkaTokens" .root }}{{ $names = append $names "kafkaOauthClientSecret" }}{{ end -}}
{{- if include "rapport.kafkaTls" .root }}{{ $names = concat $names (list "kafkaCa" "kafkaCertificate" "kafkaKey" "kafkaKeyPassword") }}{{ end -}}
{{- end -}}
{{- if eq .component "web" }}{{ $names = append $names "databaseReadUrl" }}{{ end -}}
{{- if and (eq .component "web") .root.Values.web.oidc.issuer }}{{ $names = append $names "oidcClientSecret" }}{{ end -}}
{{- $used := dict -}}
{{- range $names -}}
{{- $entry := index $.root.Values.secrets . -}}
{{- if $entry.key -}}
{{- $secret := default $.root.Values.secrets.existingSecret $entry.secret -}}
{{- if not $secret }}{{ fail (printf "secrets.existingSecret is not set: the name of the Secret with the key %s (docs/kubernetes.md, Install)" $entry.key) }}{{ end -}}
{{- $_ := set $used . (dict "secret" $secret "key" $entry.key "file" (kebabcase .)) -}}
{{- end -}}
{{- end -}}
{{- $used | toJson -}}
{{- end -}}

{{- define "rapport.secretFolder" -}}/run/rapport/secrets{{- end -}}

{{- define "rapport.databaseUrl" -}}
{{- $database := .Values.database -}}
{{- $host := required "database.host is not set: the name or address of PostgreSQL" $database.host -}}
{{- $ca := "" -}}
{{- if .Values.secrets.databaseCa.key }}{{ $ca = printf "&sslrootcert=%s/database-ca" (include "rapport.secretFolder" .) }}
{{- else if eq $database.sslmode "verify-full" }}{{ $ca = "&sslrootcert=system" }}
{{- else if eq $database.sslmode "verify-ca" }}{{ fail "database.sslmode verify-ca needs secrets.databaseCa.key: the certificate authority of PostgreSQL" }}
{{- end -}}
{{- printf "postgresql://%s@%s:%d/%s?sslmode=%s%s" (urlquery $database.user | replace "+" "%20") $host (int $database.port) (urlquery $database.name | replace "+" "%20") $database.sslmode $ca -}}
{{- end -}}

{{- /* A number as it was written: YAML's large integers are floats here. */ -}}
{{- define "rapport.text" -}}
{{- if and (kindIs "float64" .) (eq (floor .) .) }}{{ int64 . }}{{ else }}{{ . }}{{ end -}}
{{- end -}}

{{- /* The environment of a component, sorted by name. */ -}}
{{- define "rapport.environment" -}}
{{- $values := .root.Values -}}
{{- $folder := include "rapport.secretFolder" .root -}}
{{- $secrets := include "rapport.secretsOf" . | fromJson -}}
{{- $set := dict "RAPPORT_LOG_FORMAT" "json" -}}
{{- range $name, $value := $values.settings }}{{ $_ := set $set $name (include "rapport.text" $value) }}{{ end -}}
{{- $own := dict "RAPPORT_DATABASE_URL" (include "rapport.databaseUrl" .root) -}}
{{- $files := dict "databasePassword" "RAPPORT_DATABASE_PASSWORD_FILE" "databaseReadUrl" "RAPPORT_DATABASE_READ_URL_FILE" "masterKey" "RAPPORT_MASTER_KEY_FILE" "pseudonymKey" "RAPPORT_PSEUDONYM_KEY_FILE" "kafkaPassword" "RAPPORT_KAFKA_PASSWORD_FILE" "kafkaCa" "RAPPORT_KAFKA_CA_FILE" "kafkaCertificate" "RAPPORT_KAFKA_CERTIFICATE_FILE" "kafkaKey" "RAPPORT_KAFKA_KEY_FILE" "kafkaKeyPassword" "RAPPORT_KAFKA_KEY_PASSWORD_FILE" "kafkaOauthClientSecret" "RAPPORT_KAFKA_OAUTH_CLIENT_SECRET_FILE" "oidcClientSecret" "RAPPORT_OIDC_CLIENT_SECRET_FILE" -}}
{{- range $name, $entry := $secrets -}}
{{- if hasKey $files $name }}{{ $_ := set $own (index $files $name) (printf "%s/%s" $folder $entry.file) }}{{ end -}}
{{- end -}}
{{- if $values.bundle.existingClaim -}}
{{- $_ := set $own "RAPPORT_BUNDLE" (printf "/var/lib/rapport/bundle/%s" $values.bundle.path | trimSuffix "/") -}}
{{- else -}}
{{- $_ := set $own "RAPPORT_BUNDLE" $values.bundle.name -}}
{{- end -}}
{{- with $values.bundle.digest }}{{ $_ := set $own "RAPPORT_BUNDLE_DIGEST" . }}{{ end -}}
{{- if not (has .component (list "migration" "drift")) -}}
{{- $_ := set $own "RAPPORT_HEALTH_HOST" "0.0.0.0" -}}
{{- $_ := set $own "RAPPORT_HEALTH_PORT" "8081" -}}
{{- end -}}
{{- if has .component (list "worker" "web") -}}
{{- with $values.tracing.endpoint -}}
{{- $_ := set $own "OTEL_TRACES_EXPORTER" "otlp" -}}
{{- $_ := set $own "OTEL_EXPORTER_OTLP_ENDPOINT" . -}}
{{- $_ := set $own "OTEL_TRACES_SAMPLER" $values.tracing.sampler -}}
{{- $_ := set $own "OTEL_TRACES_SAMPLER_ARG" (include "rapport.text" $values.tracing.samplerArg) -}}
{{- end -}}
{{- $kafka := $values.kafka -}}
{{- $_ := set $own "RAPPORT_KAFKA_BROKERS" (required "kafka.brokers is not set: host:port of the brokers, separated by commas" $kafka.brokers) -}}
{{- $_ := set $own "RAPPORT_KAFKA_SECURITY" $kafka.security -}}
{{- $_ := set $own "RAPPORT_KAFKA_GROUP" $kafka.group -}}
{{- $_ := set $own "RAPPORT_TOPIC_PREFIX" $kafka.topicPrefix -}}
{{- $_ := set $own "RAPPORT_TOPIC_PARTITIONS" ($kafka.partitions | toString) -}}
{{- $_ := set $own "RAPPORT_TOPIC_REPLICATION" ($kafka.replication | toString) -}}
{{- if hasPrefix "SASL_" $kafka.security }}{{ $_ := set $own "RAPPORT_KAFKA_SASL_MECHANISM" $kafka.mechanism }}{{ end -}}
{{- if include "rapport.kafkaPassword" .root }}{{ $_ := set $own "RAPPORT_KAFKA_USERNAME" $kafka.username }}{{ end -}}
{{- if include "rapport.kafkaTokens" .root -}}
{{- $_ := set $own "RAPPORT_KAFKA_OAUTH_TOKEN_URL" (required "kafka.oauth.tokenUrl is not set: kafka.mechanism is OAUTHBEARER" $kafka.oauth.tokenUrl) -}}
{{- $_ := set $own "RAPPORT_KAFKA_OAUTH_CLIENT_ID" (required "kafka.oauth.clientId is not set: kafka.mechanism is OAUTHBEARER" $kafka.oauth.clientId) -}}
{{- with $kafka.oauth.scope }}{{ $_ := set $own "RAPPORT_KAFKA_OAUTH_SCOPE" . }}{{ end -}}
{{- end -}}
{{- if $values.files.rules }}{{ $_ := set $own "RAPPORT_RULES" "/etc/rapport/rules/rules.yaml" }}{{ end -}}
{{- if $values.files.intents }}{{ $_ := set $own "RAPPORT_INTENTS" "/etc/rapport/intents/intents.yaml" }}{{ end -}}
{{- if $values.files.groups }}{{ $_ := set $own "RAPPORT_GROUPS" "/etc/rapport/groups/groups.yaml" }}{{ end -}}
{{- if and $values.files.routes (eq .component "worker") }}{{ $_ := set $own "RAPPORT_BUNDLE_ROUTES" "/etc/rapport/routes/routes.yaml" }}{{ end -}}
{{- end -}}
{{- if and (eq .component "worker") $values.worker.gpu.enabled }}{{ $_ := set $own "RAPPORT_PROVIDER" "cuda" }}{{ end -}}
{{- if has .component (list "web" "notifier") -}}
{{- with $values.web.externalUrl }}{{ $_ := set $own "RAPPORT_EXTERNAL_URL" . }}{{ end -}}
{{- end -}}
{{- if eq .component "web" -}}
{{- $_ := set $own "RAPPORT_WEB_HOST" "0.0.0.0" -}}
{{- $_ := set $own "RAPPORT_WEB_PORT" "8080" -}}
{{- $_ := set $own "RAPPORT_WEB_HTTPS" ($values.web.https | toString) -}}
{{- with $values.web.proxies }}{{ $_ := set $own "RAPPORT_WEB_PROXIES" . }}{{ end -}}
{{- if $values.files.scorecards }}{{ $_ := set $own "RAPPORT_SCORECARDS" "/etc/rapport/scorecards/scorecards.yaml" }}{{ end -}}
{{- if $values.web.oidc.issuer -}}
{{- $_ := set $own "RAPPORT_OIDC_ISSUER" $values.web.oidc.issuer -}}
{{- $_ := set $own "RAPPORT_OIDC_CLIENT_ID" (required "web.oidc.clientId is not set: web.oidc.issuer is" $values.web.oidc.clientId) -}}
{{- $_ := required "web.externalUrl is not set: single sign-on (web.oidc.issuer) returns to it" $values.web.externalUrl -}}
{{- end -}}
{{- end -}}
{{- if eq .component "notifier" -}}
{{- $_ := set $own "RAPPORT_NOTIFICATIONS" "/etc/rapport/notifications/notifications.yaml" -}}
{{- range $name, $_ := $values.notifier.secrets }}{{ $_ := set $own (printf "%s_FILE" $name) (printf "/run/rapport/targets/%s" $name) }}{{ end -}}
{{- end -}}
{{- range $name, $value := mustMergeOverwrite (dict) $set $own }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end -}}
{{- end -}}

{{- define "rapport.mounts" -}}
{{- $values := .root.Values -}}
- {name: tmp, mountPath: /tmp}
- {name: secrets, mountPath: {{ include "rapport.secretFolder" .root }}, readOnly: true}
{{- if $values.bundle.existingClaim }}
- {name: bundle, mountPath: /var/lib/rapport/bundle, readOnly: true}
{{- end }}
{{- if and $values.files.rules (has .component (list "worker" "web")) }}
- {name: rules, mountPath: /etc/rapport/rules, readOnly: true}
{{- end }}
{{- if and $values.files.intents (has .component (list "worker" "web")) }}
- {name: intents, mountPath: /etc/rapport/intents, readOnly: true}
{{- end }}
{{- if and $values.files.groups (has .component (list "worker" "web")) }}
- {name: groups, mountPath: /etc/rapport/groups, readOnly: true}
{{- end }}
{{- if and $values.files.routes (eq .component "worker") }}
- {name: routes, mountPath: /etc/rapport/routes, readOnly: true}
{{- end }}
{{- if and $values.files.scorecards (eq .component "web") }}
- {name: scorecards, mountPath: /etc/rapport/scorecards, readOnly: true}
{{- end }}
{{- if eq .component "notifier" }}
- {name: notifications, mountPath: /etc/rapport/notifications, readOnly: true}
{{- if $values.notifier.secrets }}
- {name: targets, mountPath: /run/rapport/targets, readOnly: true}
{{- end }}
{{- end }}
{{- with $values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "rapport.volumes" -}}
{{- $values := .root.Values -}}
{{- $name := include "rapport.fullname" .root -}}
- name: tmp
  emptyDir: {sizeLimit: {{ if eq .component "web" }}{{ $values.web.tmpSize }}{{ else }}64Mi{{ end }}}
- name: secrets
  projected:
    defaultMode: 288 # 0440: of root, and read by fsGroup
    sources:
      {{- range $entry := include "rapport.secretsOf" . | fromJson }}
      - secret:
          name: {{ $entry.secret | quote }}
          items: [{key: {{ $entry.key | quote }}, path: {{ $entry.file }}}]
      {{- end }}
{{- if $values.bundle.existingClaim }}
- name: bundle
  persistentVolumeClaim: {claimName: {{ $values.bundle.existingClaim | quote }}, readOnly: true}
{{- end }}
{{- if and $values.files.rules (has .component (list "worker" "web")) }}
- name: rules
  configMap: {name: {{ $name }}-rules}
{{- end }}
{{- if and $values.files.intents (has .component (list "worker" "web")) }}
- name: intents
  configMap: {name: {{ $name }}-intents}
{{- end }}
{{- if and $values.files.groups (has .component (list "worker" "web")) }}
- name: groups
  configMap: {name: {{ $name }}-groups}
{{- end }}
{{- if and $values.files.routes (eq .component "worker") }}
- name: routes
  configMap: {name: {{ $name }}-routes}
{{- end }}
{{- if and $values.files.scorecards (eq .component "web") }}
- name: scorecards
  configMap: {name: {{ $name }}-scorecards}
{{- end }}
{{- if eq .component "notifier" }}
- name: notifications
  configMap: {name: {{ $name }}-notifications}
{{- if $values.notifier.secrets }}
- name: targets
  projected:
    defaultMode: 288
    sources:
      {{- range $variable, $entry := $values.notifier.secrets }}
      - secret:
          name: {{ default $values.secrets.existingSecret $entry.secret | required (printf "secrets.existingSecret is not set: notifier.secrets.%s names no Secret" $variable) | quote }}
          items: [{key: {{ $entry.key | quote }}, path: {{ $variable }}}]
      {{- end }}
{{- end }}
{{- end }}
{{- with $values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- /* What all pods have in common: nothing is written outside volumes, no privileges, no token. */ -}}
{{- define "rapport.pod" -}}
{{- $component := index .root.Values .component -}}
automountServiceAccountToken: false
enableServiceLinks: false # its variables would start with RAPPORT_
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . | quote }}
  {{- end }}
{{- end }}
{{- with $component.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "rapport.container" -}}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end -}}

{{- define "rapport.spread" -}}
topologySpreadConstraints:
  {{- range list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- include "rapport.selector" $ | nindent 8 }}
  {{- end }}
{{- end -}}

{{- define "rapport.podLabels" -}}
labels: {{- include "rapport.labels" . | nindent 2 }}
{{- end -}}

{{- /* The port of a URL. */ -}}
{{- define "rapport.portOf" -}}
{{- $port := regexFind ":[0-9]+$" (urlParse .).host -}}
{{- if $port }}{{ trimPrefix ":" $port }}{{ else }}{{ ternary "80" "443" (hasPrefix "http:" .) }}{{ end -}}
{{- end -}}

{{- /* Slowly, because the group rebalances at each change. */ -}}
{{- define "rapport.scalingBehaviour" -}}
scaleUp:
  stabilizationWindowSeconds: 30
  policies: [{type: Pods, value: 2, periodSeconds: 60}]
scaleDown:
  stabilizationWindowSeconds: 600
  policies: [{type: Pods, value: 1, periodSeconds: 120}]
{{- end -}}
