"""The chart renders with Helm into objects that Kubernetes accepts and that fit the service."""

import json
import re
from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
import sqlalchemy as sa
import yaml
from jsonschema import Draft202012Validator
from prometheus_client import CollectorRegistry

from servers import helm_command
from servers.helm_command import CHART, HelmFailed, HelmMissing
from servers.kubernetes_schemas import KINDS
from stream_app import __version__, secret_files
from stream_app.health_server import serve_probes
from stream_app.notifications import targets
from stream_app.settings import Settings
from stream_app.web import health_routes
from stream_app.worker.upkeep.health import Health, HealthLimits
from tests.chaos.workers import SLOWEST_STOP
from tests.conftest import _missing

ROOT: Final = Path(__file__).parents[1]
SCHEMAS: Final = ROOT / "servers" / "helm" / "schemas"
PODS: Final = ("Deployment", "Job", "CronJob")
BASE: Final[dict[str, Any]] = {
    "kafka": {"brokers": "kafka-0.kafka:9093, kafka-1.kafka:9094"},
    "database": {"host": "postgres.data"},
    "secrets": {"existingSecret": "rapport"},
}
TLS: Final = {
    "databaseCa": {"key": "db-ca.pem"},
    "kafkaCa": {"key": "ca.crt", "secret": "cluster-ca"},
    "kafkaCertificate": {"key": "tls.crt", "secret": "client"},
    "kafkaKey": {"key": "tls.key", "secret": "client"},
    "kafkaKeyPassword": {"key": "password", "secret": "client"},
}
TARGETS: Final = (
    "targets: [{name: desk, kind: webhook, url: 'https://desk.example', secret: '${DESK}'}]"
)
SETS: Final[dict[str, dict[str, Any]]] = {
    "minimal": {},
    "everything": {
        "image": {
            "registry": "registry.example/team/",
            "pullSecrets": ["pull"],
            "web": {"digest": f"sha256:{'ab' * 32}"},
        },
        "secrets": {
            **TLS,
            "databaseReadUrl": {"key": "read-url"},
            "oidcClientSecret": {"key": "oidc"},
        },
        "settings": {
            "RAPPORT_BATCH_MAX": 1_000_000,
            "RAPPORT_REORDER_WAIT": 2.5,
            "RAPPORT_REDACT": False,
            "RAPPORT_LOG_LEVEL": "WARNING",
        },
        "tracing": {"endpoint": "http://collector.monitoring:4318", "samplerArg": 0.5},
        "bundle": {"existingClaim": "bundles", "path": "default", "digest": "0" * 64},
        "files": {
            "rules": "rules: []\n",
            "scorecards": "scorecards: []\n",
            "intents": "version: 1\n",
            "routes": "version: 1\n",
            "groups": "approaches: {}\n",
        },
        "worker": {
            "autoscaling": {"by": "lag"},
            "nodeSelector": {"pool": "cpu"},
            "tolerations": [{"key": "batch", "operator": "Exists"}],
            "affinity": {"podAntiAffinity": {}},
            "podAnnotations": {"example.org/team": "a"},
        },
        "web": {
            "externalUrl": "https://rapport.example",
            "proxies": "10.4.0.0/16",
            "oidc": {"issuer": "https://id.example:8443/realm", "clientId": "rapport"},
            "ingress": {
                "enabled": True,
                "className": "nginx",
                "host": "rapport.example",
                "tlsSecret": "tls",
            },
            "disruption": {"maxUnavailable": "50%"},
            "podAnnotations": {"example.org/team": "a"},
        },
        "notifier": {
            "enabled": True,
            "targets": TARGETS,
            "secrets": {"DESK": {"key": "desk"}, "MAIL": {"key": "url", "secret": "mail"}},
        },
        "drift": {"enabled": True, "schedule": "0 5 * * 1"},
        "networkPolicy": {
            "kafka": {"ports": [9095], "to": [{"podSelector": {"matchLabels": {"app": "kafka"}}}]},
            "database": {"to": [{"ipBlock": {"cidr": "10.1.2.3/32"}}]},
        },
        "monitoring": {
            "podMonitors": {"enabled": True, "labels": {"release": "prometheus"}},
            "rules": {"enabled": True, "labels": {"release": "prometheus"}},
        },
        "extraVolumes": [{"name": "archive", "persistentVolumeClaim": {"claimName": "archive"}}],
        "extraVolumeMounts": [{"name": "archive", "mountPath": "/archive"}],
    },
    "tokens": {
        "kafka": {
            "mechanism": "OAUTHBEARER",
            "oauth": {
                "tokenUrl": "https://id.example/token",
                "clientId": "worker",
                "scope": "kafka",
            },
        },
        "secrets": {"kafkaOauthClientSecret": {"key": "client-secret"}},
        "worker": {"autoscaling": {"by": "lag"}},
    },
    "certificates": {
        "kafka": {"security": "SSL"},
        "secrets": TLS,
        "worker": {"autoscaling": {"by": "lag"}},
    },
    "cpu": {"worker": {"autoscaling": {"by": "cpu", "maxReplicas": 4}}},
    "gpu": {
        "worker": {"gpu": {"enabled": True}, "nodeSelector": {"pool": "gpu"}},
        "settings": {"RAPPORT_BATCH_MAX": 1024},
    },
    "plain": {
        "kafka": {"security": "PLAINTEXT"},
        "database": {"sslmode": "disable", "user": "a b", "port": 6432},
        "worker": {"autoscaling": {"by": "lag"}},
        "migration": {"enabled": False},
        "networkPolicy": {"enabled": False},
        "serviceAccount": {"create": False, "name": "existing"},
        "fullnameOverride": "empathy",
    },
}


def merged(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    found = dict(one)
    for key, value in other.items():
        inner = found.get(key)
        both = isinstance(value, dict) and isinstance(inner, dict)
        found[key] = merged(inner, value) if both else value
    return found


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        helm_command.helm("version")
    except HelmMissing as problem:
        _missing(str(problem))
    return tmp_path_factory.mktemp("values")


@pytest.fixture(scope="session")
def rendered(folder: Path) -> dict[str, list[dict[str, Any]]]:
    return {name: render(folder, changes, name) for name, changes in SETS.items()}


def render(folder: Path, changes: dict[str, Any], name: str = "tried") -> list[dict[str, Any]]:
    return helm_command.render([values(folder, changes, name)])


def values(folder: Path, changes: dict[str, Any], name: str) -> Path:
    file = folder / f"{name}.yaml"
    file.write_text(json.dumps(merged(BASE, changes)), "utf-8")
    return file


def of(objects: list[dict[str, Any]], *kinds: str) -> list[dict[str, Any]]:
    return [each for each in objects if each["kind"] in kinds]


def component(item: dict[str, Any]) -> str:
    return str(item["metadata"]["labels"].get("app.kubernetes.io/component", ""))


def one(objects: list[dict[str, Any]], kind: str, part: str = "") -> dict[str, Any]:
    [found] = [each for each in of(objects, kind) if not part or component(each) == part]
    return found


def template(item: dict[str, Any]) -> dict[str, Any]:
    spec = item["spec"]
    if item["kind"] == "CronJob":
        spec = spec["jobTemplate"]["spec"]
    found: dict[str, Any] = spec["template"]
    return found


def pod(item: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = template(item)["spec"]
    return found


def container(item: dict[str, Any]) -> dict[str, Any]:
    [found] = pod(item)["containers"]
    return dict(found)


def environment(item: dict[str, Any]) -> dict[str, str]:
    names = [each["name"] for each in container(item)["env"]]
    assert names == sorted(set(names))
    return {each["name"]: each["value"] for each in container(item)["env"]}


def everywhere(rendered: dict[str, list[dict[str, Any]]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every object with pods, of all sets."""
    for name, objects in rendered.items():
        for item in of(objects, *PODS):
            yield f"{name} {item['metadata']['name']}", item


@cache
def schema(kind: str) -> Draft202012Validator:
    file = "kubernetes-1.29" if kind in KINDS else "custom-resources"
    document = json.loads((SCHEMAS / f"{file}.json").read_text("utf-8"))
    return Draft202012Validator({"$ref": f"#/properties/{kind}", **document})


def faults(item: dict[str, Any]) -> list[str]:
    return [f"{each.json_path}: {each.message}" for each in schema(item["kind"]).iter_errors(item)]


def test_the_chart_has_the_version_of_the_service() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text("utf-8"))
    assert (chart["version"], chart["appVersion"]) == (__version__, __version__)


def test_helm_finds_nothing_to_criticise(folder: Path) -> None:
    for name in ("minimal", "everything"):
        printed = helm_command.lint([values(folder, SETS[name], name)])
        assert "1 chart(s) linted, 0 chart(s) failed" in printed


def test_every_object_is_valid_and_has_a_name_of_its_own(
    rendered: dict[str, list[dict[str, Any]]],
) -> None:
    seen = set()
    for name, objects in rendered.items():
        for item in objects:
            assert faults(item) == [], (name, item["kind"])
            assert item["apiVersion"]
            seen.add(item["kind"])
        assert len({(each["kind"], each["metadata"]["name"]) for each in objects}) == len(objects)
    assert seen == {*KINDS, "ScaledObject", "TriggerAuthentication", "PodMonitor", "PrometheusRule"}


def test_a_misspelt_field_is_not_valid(rendered: dict[str, list[dict[str, Any]]]) -> None:
    worker = deepcopy(one(rendered["minimal"], "Deployment", "worker"))
    worker["spec"]["template"]["spec"]["containers"][0]["readynessProbe"] = {}
    worker["spec"]["replicas"] = "two"
    assert len(faults(worker)) == 2
    scaled = deepcopy(one(rendered["tokens"], "ScaledObject"))
    scaled["spec"]["maxReplicas"] = 3
    assert len(faults(scaled)) == 1


def test_each_environment_is_understood_by_the_service(
    rendered: dict[str, list[dict[str, Any]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names are settings, secrets are files, and the whole makes valid settings."""
    known = {f"RAPPORT_{name.upper()}" for name in Settings.model_fields}
    direct = secret_files.variables(Settings)
    known |= set(direct.values())
    (tmp_path / "bundle" / "default").mkdir(parents=True)
    (tmp_path / "groups.yaml").write_text(SETS["everything"]["files"]["groups"], "utf-8")
    folders = re.compile("^(/var/lib/rapport|/etc/rapport/groups)")
    for where, item in everywhere(rendered):
        found = environment(item)
        assert {name for name in found if name.startswith("RAPPORT_")} <= known, where
        assert not found.keys() & {"RAPPORT_MASTER_KEY", "RAPPORT_PSEUDONYM_KEY"}, where
        secrets = {f"RAPPORT_{name.upper()}" for name in direct} - {"RAPPORT_DATABASE_URL"}
        assert not found.keys() & secrets, where
        with monkeypatch.context() as patch:
            for name, value in found.items():
                here = value.replace("/run/rapport/secrets", str(tmp_path))
                if here != value and name.endswith("_FILE"):
                    Path(here).write_text("p@ss:w/rd\n", "utf-8")
                patch.setenv(name, folders.sub(str(tmp_path), here))
            settings = Settings()
        url = sa.make_url(settings.database)
        assert url.password == "p@ss:w/rd", where
        assert url.host == "postgres.data", where
    assert (url.username, url.port, url.query["sslmode"]) == ("a b", 6432, "disable")


def test_traces_are_sent_where_the_network_policy_lets_them(
    rendered: dict[str, list[dict[str, Any]]],
) -> None:
    for component in ("worker", "web"):
        found = environment(one(rendered["everything"], "Deployment", component))
        assert found["OTEL_TRACES_EXPORTER"] == "otlp"
        assert found["OTEL_EXPORTER_OTLP_ENDPOINT"] == "http://collector.monitoring:4318"
        assert found["OTEL_TRACES_SAMPLER_ARG"] == "0.5"
        policy = one(rendered["everything"], "NetworkPolicy", component)
        ports = [port["port"] for rule in policy["spec"]["egress"] for port in rule["ports"]]
        assert 4318 in ports
        assert "OTEL_TRACES_EXPORTER" not in environment(
            one(rendered["minimal"], "Deployment", component)
        )


def test_settings_in_the_values_are_all_that_the_chart_does_not_set(
    rendered: dict[str, list[dict[str, Any]]],
) -> None:
    document = json.loads((CHART / "values.schema.json").read_text("utf-8"))
    allowed = document["properties"]["settings"]["properties"].keys()
    secret = set(secret_files.variables(Settings)) | {"master_key", "pseudonym_key"}
    known = {f"RAPPORT_{name.upper()}" for name in Settings.model_fields if name not in secret}
    chosen = {name for changes in SETS.values() for name in changes.get("settings", {})}
    free = {*chosen, "RAPPORT_LOG_FORMAT", "RAPPORT_PROVIDER"}
    owned = {name for _, item in everywhere(rendered) for name in environment(item)} - free
    assert allowed == known - owned, "differs: `settings` in the chart's values.schema.json"


def test_numbers_and_switches_of_the_values_arrive_as_they_were_written(
    rendered: dict[str, list[dict[str, Any]]],
) -> None:
    found = environment(one(rendered["everything"], "Deployment", "worker"))
    assert found["RAPPORT_BATCH_MAX"] == "1000000"
    assert found["RAPPORT_REORDER_WAIT"] == "2.5"
    assert found["RAPPORT_REDACT"] == "false"


def test_exactly_the_secrets_that_are_mounted_are_read(
    rendered: dict[str, list[dict[str, Any]]],
) -> None:
    for where, item in everywhere(rendered):
        found = environment(item)
        mounts = {each["name"]: each for each in container(item)["volumeMounts"]}
        volumes = {each["name"]: each for each in pod(item)["volumes"]}
        assert mounts.keys() == volumes.keys(), where
        mounted = {
            f"{mounts[name]['mountPath']}/{entry['path']}"
            for name, volume in volumes.items()
            for source in volume.get("projected", {}).get("sources", [])
            for entry in source["secret"]["items"]
        }
        read = set(re.findall(r"/run/rapport/[\w/.-]+", " ".join(found.values())))
        assert read == mounted, where
        assert all(mounts[name]["readOnly"] for name in volumes if name not in {"tmp", "archive"})
    for objects in rendered.values():
        assert not of(objects, "Secret")


def test_a_process_gets_only_the_secrets_that_it_needs(
    rendered: dict[str, list[dict[str, Any]]],
) -> None:
    objects = rendered["everything"]
    notifier = environment(one(objects, "Deployment", "notifier"))
    assert not [name for name in notifier if "KAFKA" in name or "_KEY" in name or "OIDC" in name]
    assert notifier["DESK_FILE"] == "/run/rapport/targets/DESK"
    migration = environment(one(objects, "Job"))
    assert not [name for name in migration if "KAFKA" in name or "OIDC" in name]
    assert "RAPPORT_OIDC_CLIENT_SECRET_FILE" in environment(one(objects, "Deployment", "web"))
    worker = environment(one(objects, "Deployment", "worker"))
    assert not [name for name in worker if "OIDC" in name or "WEB" in name]


def test_probes_ask_for_paths_that_are_served(rendered: dict[str, list[dict[str, Any]]]) -> None:
    health = Health(HealthLimits())
    with serve_probes("127.0.0.1", 0, health, CollectorRegistry()) as port:
        on_health = {
            path
            for path in ("/healthz", "/readyz", "/metrics")
            if httpx.get(f"http://127.0.0.1:{port}{path}").status_code in {200, 503}
        }
    on_web = {getattr(route, "path", "") for route in health_routes.router.routes}
    checked = 0
    for where, item in everywhere(rendered):
        ports = {
            each["name"]: str(each["containerPort"]) for each in container(item).get("ports", [])
        }
        found = environment(item)
        assert ports.get("health") == found.get("RAPPORT_HEALTH_PORT"), where
        assert ports.get("http") == found.get("RAPPORT_WEB_PORT"), where
        if item["kind"] == "Deployment":
            for probe, path in (
                ("startupProbe", "/healthz"),
                ("livenessProbe", "/healthz"),
                ("readinessProbe", "/readyz"),
            ):
                asked = container(item)[probe]["httpGet"]
                assert asked["path"] == path
                assert path in (on_web if asked["port"] == "http" else on_health), where
                assert asked["port"] in ports
                checked += 1
    assert checked > 40


def test_processes_have_time_to_stop(rendered: dict[str, list[dict[str, Any]]]) -> None:
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))
    in_compose = int(compose["services"]["worker"]["stop_grace_period"].removesuffix("s"))
    objects = rendered["everything"]
    grace = {
        component(item): pod(item)["terminationGracePeriodSeconds"]
        for item in of(objects, "Deployment")
    }
    assert grace["worker"] >= max(in_compose, SLOWEST_STOP) + 10
    assert grace["notifier"] > targets.MAX_TIMEOUT
    web = container(one(objects, "Deployment", "web"))
    command, pause = web["lifecycle"]["preStop"]["exec"]["command"]
    assert command == "sleep"
    assert grace["web"] >= int(pause) + 30


def test_memory_is_limited_as_in_compose(rendered: dict[str, list[dict[str, Any]]]) -> None:
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))["services"]
    for item in of(rendered["everything"], "Deployment"):
        limit = container(item)["resources"]["limits"]["memory"]
        in_compose = services[component(item)]["deploy"]["resources"]["limits"]["memory"]
        assert limit.removesuffix("i").lower() == in_compose


def test_every_container_is_restricted(rendered: dict[str, list[dict[str, Any]]]) -> None:
    for where, item in everywhere(rendered):
        spec, inner = pod(item), container(item)
        assert spec["automountServiceAccountToken"] is False, where
        assert spec["enableServiceLinks"] is False, where
        context = spec["securityContext"]
        assert context["runAsNonRoot"] is True, where
        assert context["runAsUser"] == context["fsGroup"] == 10001, where
        assert context["seccompProfile"] == {"type": "RuntimeDefault"}, where
        assert inner["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }, where
        assert inner["resources"]["limits"]["memory"], where
        assert inner["resources"]["requests"]["cpu"], where
        assert not {"hostNetwork", "hostPID", "hostIPC"} & spec.keys(), where
    dockerfile = (ROOT / "Dockerfile").read_text("utf-8")
    assert "--uid 10001" in dockerfile
    for item in of(rendered["everything"], "ServiceAccount"):
        assert item["automountServiceAccountToken"] is False


def test_selectors_match_the_pods_of_their_component_only(
    rendered: dict[str, list[dict[str, Any]]],
) -> None:
    for name, objects in rendered.items():
        pods = {
            component(item): template(item)["metadata"]["labels"] for item in of(objects, *PODS)
        }
        checked = 0
        for item in objects:
            spec = item.get("spec", {})
            selector = spec.get("podSelector") or spec.get("selector")
            if selector is None:
                continue
            wanted = selector.get("matchLabels", selector)
            chosen = {part for part, labels in pods.items() if wanted.items() <= labels.items()}
            assert chosen == ({component(item)} if component(item) else set(pods)), (name, item)
            checked += 1
        assert checked >= 5
        for item in of(objects, "Deployment"):
            for spread in pod(item).get("topologySpreadConstraints", []):
                assert spread["labelSelector"] == item["spec"]["selector"]


def test_an_upgrade_starts_a_new_process_before_it_stops_an_old_one(
    rendered: dict[str, list[dict[str, Any]]],
) -> None:
    objects = rendered["everything"]
    for part in ("worker", "web"):
        strategy = one(objects, "Deployment", part)["spec"]["strategy"]
        assert strategy["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
        budget = one(objects, "PodDisruptionBudget", part)["spec"]
        assert budget["unhealthyPodEvictionPolicy"] == "AlwaysAllow"
        assert budget["maxUnavailable"] == {"worker": 1, "web": "50%"}[part]
    notifier = one(objects, "Deployment", "notifier")["spec"]
    assert (notifier["replicas"], notifier["strategy"]) == (1, {"type": "Recreate"})


def test_the_migration_runs_before_the_release_and_needs_nothing_of_it(
    rendered: dict[str, list[dict[str, Any]]],
) -> None:
    job = one(rendered["everything"], "Job")
    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade"
    assert container(job)["args"] == ["db", "upgrade"]
    assert job["spec"]["backoffLimit"] > 0
    assert job["spec"]["activeDeadlineSeconds"] > 0
    assert "serviceAccountName" not in pod(job)
    assert "configMap" not in json.dumps(pod(job)["volumes"])
    assert not of(rendered["plain"], "Job")
    for item in of(rendered["plain"], "Deployment"):
        assert pod(item)["serviceAccountName"] == "existing"


def test_drift_is_looked_for_by_the_image_that_has_the_analyses(
    rendered: dict[str, list[dict[str, Any]]],
) -> None:
    job = one(rendered["everything"], "CronJob")
    assert job["spec"]["schedule"] == "0 5 * * 1"
    assert container(job)["args"] == ["drift", "check"]
    web = one(rendered["everything"], "Deployment", "web")
    assert container(job)["image"] == container(web)["image"]
    assert not [name for name in environment(job) if "KAFKA" in name or "OIDC" in name]
    assert not of(rendered["minimal"], "CronJob")


def test_policies_open_the_ports_that_are_used_and_no_others(
    rendered: dict[str, list[dict[str, Any]]],
) -> None:
    assert not of(rendered["plain"], "NetworkPolicy")
    expected = {
        "minimal": {"": {53, 5432}, "worker": {9093, 9094}, "web": {9093, 9094}},
        "tokens": {"": {53, 5432}, "worker": {9093, 9094, 443}, "web": {9093, 9094, 443}},
        "everything": {
            "": {53, 5432},
            "worker": {9093, 9094, 9095, 4318},
            "web": {9093, 9094, 9095, 8443, 4318},
            "notifier": {443, 587},
        },
    }
    for name, by_component in expected.items():
        found = of(rendered[name], "NetworkPolicy")
        assert {component(each) for each in found} == by_component.keys()
        for each in found:
            assert each["spec"]["policyTypes"] == ["Ingress", "Egress"]
            ports = {rule["port"] for way in each["spec"]["egress"] for rule in way["ports"]}
            assert ports == by_component[component(each)], (name, component(each))
    everything = rendered["everything"]
    for part in ("worker", "web", "notifier"):
        named = {each["name"] for each in container(one(everything, "Deployment", part))["ports"]}
        inward = one(everything, "NetworkPolicy", part)["spec"]["ingress"]
        assert {port["port"] for way in inward for port in way["ports"]} == named
        assert all(way["from"] for way in inward)
    [first] = [each for each in of(everything, "NetworkPolicy") if not component(each)]
    assert "ingress" not in first["spec"]
    service = one(everything, "Service")["spec"]["ports"]
    assert [each["targetPort"] for each in service] == ["http"]
    backend = one(everything, "Ingress")["spec"]["rules"][0]["http"]["paths"][0]["backend"][
        "service"
    ]
    assert backend == {
        "name": one(everything, "Service")["metadata"]["name"],
        "port": {"name": "http"},
    }


def test_workers_scale_by_lag_with_the_credentials_of_the_workers(
    rendered: dict[str, list[dict[str, Any]]],
) -> None:
    for name, parameters in {
        "everything": {"username", "password", "ca", "cert", "key", "keyPassword"},
        "tokens": {"username", "password", "oauthTokenEndpointUri", "scopes"},
        "certificates": {"ca", "cert", "key", "keyPassword"},
    }.items():
        worker = one(rendered[name], "Deployment", "worker")
        assert "replicas" not in worker["spec"]
        assert not of(rendered[name], "HorizontalPodAutoscaler")
        scaled, given = (
            one(rendered[name], "ScaledObject"),
            one(rendered[name], "TriggerAuthentication"),
        )
        [trigger] = scaled["spec"]["triggers"]
        assert scaled["spec"]["scaleTargetRef"]["name"] == worker["metadata"]["name"]
        assert trigger["authenticationRef"]["name"] == given["metadata"]["name"]
        found = environment(worker)
        assert trigger["metadata"]["bootstrapServers"] == found["RAPPORT_KAFKA_BROKERS"]
        assert trigger["metadata"]["consumerGroup"] == found["RAPPORT_KAFKA_GROUP"]
        assert trigger["metadata"]["topic"] == f"{found['RAPPORT_TOPIC_PREFIX']}.turns"
        assert trigger["metadata"]["tls"] == "enable"
        env, secrets = given["spec"].get("env", []), given["spec"].get("secretTargetRef", [])
        assert {each["parameter"] for each in [*env, *secrets]} == parameters
        assert {each["name"] for each in env} <= found.keys()
        mounted = {
            (source["secret"]["name"], entry["key"])
            for volume in pod(worker)["volumes"]
            for source in volume.get("projected", {}).get("sources", [])
            for entry in source["secret"]["items"]
        }
        assert {(each["name"], each["key"]) for each in secrets} <= mounted
    assert not of(rendered["plain"], "TriggerAuthentication")
    [trigger] = one(rendered["plain"], "ScaledObject")["spec"]["triggers"]
    assert "authenticationRef" not in trigger
    assert trigger["metadata"]["tls"] == "disable"


def test_workers_scale_by_cpu_without_keda(rendered: dict[str, list[dict[str, Any]]]) -> None:
    scaler = one(rendered["cpu"], "HorizontalPodAutoscaler")["spec"]
    worker = one(rendered["cpu"], "Deployment", "worker")
    assert scaler["scaleTargetRef"]["name"] == worker["metadata"]["name"]
    assert (scaler["minReplicas"], scaler["maxReplicas"]) == (2, 4)
    assert "replicas" not in worker["spec"]
    assert not of(rendered["cpu"], "ScaledObject")


def test_gpu_workers_run_the_gpu_image_on_gpu_nodes(
    rendered: dict[str, list[dict[str, Any]]],
) -> None:
    worker = one(rendered["gpu"], "Deployment", "worker")
    assert container(worker)["image"] == f"rapport-gpu:{__version__}"
    assert environment(worker)["RAPPORT_PROVIDER"] == "cuda"
    resources = container(worker)["resources"]
    assert resources["limits"]["nvidia.com/gpu"] == resources["requests"]["nvidia.com/gpu"] == "1"
    assert pod(worker)["nodeSelector"] == {"nvidia.com/gpu.present": "true", "pool": "gpu"}
    assert [each["key"] for each in pod(worker)["tolerations"]] == ["nvidia.com/gpu"]
    assert container(one(rendered["gpu"], "Job"))["image"] == f"rapport-worker:{__version__}"
    rolled = worker["spec"]["strategy"]["rollingUpdate"]
    assert rolled == {"maxSurge": 0, "maxUnavailable": 1}, "a node has no GPU to spare"
    usual = one(rendered["minimal"], "Deployment", "worker")["spec"]["strategy"]["rollingUpdate"]
    assert usual == {"maxSurge": 1, "maxUnavailable": 0}
    locked = (ROOT / "requirements" / "gpu.txt").read_text("utf-8")
    names = set(re.findall(r"^([\w-]+)==", locked, re.MULTILINE))
    assert {"onnxruntime-gpu", "onnx"} <= names
    assert "onnxruntime" not in names, "both together hide CUDA"
    assert "--extra gpu" in (ROOT / "Makefile").read_text("utf-8")


def test_images_are_those_that_compose_builds(rendered: dict[str, list[dict[str, Any]]]) -> None:
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))["services"]
    for item in of(rendered["minimal"], "Deployment", "Job"):
        name = {"migration": "migrate"}.get(component(item), component(item))
        assert container(item)["image"] == services[name]["image"]
        assert container(item)["args"] == services[name]["command"]
    web = container(one(rendered["everything"], "Deployment", "web"))["image"]
    assert web == f"registry.example/team/rapport-web@sha256:{'ab' * 32}"


def test_alerts_and_jobs_are_those_of_the_monitoring(
    rendered: dict[str, list[dict[str, Any]]],
) -> None:
    monitoring = ROOT / "servers" / "monitoring"
    assert (CHART / "files" / "rules.yml").read_bytes() == (monitoring / "rules.yml").read_bytes()
    rules = yaml.safe_load((monitoring / "rules.yml").read_text("utf-8"))
    assert one(rendered["everything"], "PrometheusRule")["spec"] == rules
    jobs = yaml.safe_load((monitoring / "prometheus.yml").read_text("utf-8"))["scrape_configs"]
    found = {
        each["replacement"]
        for monitor in of(rendered["everything"], "PodMonitor")
        for endpoint in monitor["spec"]["podMetricsEndpoints"]
        for each in endpoint["relabelings"]
    }
    assert found == {job["job_name"] for job in jobs}
    assert not of(rendered["minimal"], "PodMonitor", "PrometheusRule")


def test_files_of_the_values_are_mounted_where_the_settings_say(
    rendered: dict[str, list[dict[str, Any]]],
) -> None:
    maps = {
        each["metadata"]["name"]: each["data"] for each in of(rendered["everything"], "ConfigMap")
    }
    names = ("rules", "scorecards", "routes", "intents", "groups", "notifications")
    assert maps.keys() == {f"rapport-{name}" for name in names}
    read = set()
    for item in of(rendered["everything"], "Deployment"):
        mounts = {each["name"]: each["mountPath"] for each in container(item)["volumeMounts"]}
        there = {
            f"{mounts[volume['name']]}/{file}"
            for volume in pod(item)["volumes"]
            if "configMap" in volume
            for file in maps[volume["configMap"]["name"]]
        }
        named = {value for value in environment(item).values() if value.startswith("/etc/")}
        assert named == there
        read |= named
    assert len(read) == 6
    assert maps["rapport-notifications"]["notifications.yaml"] == TARGETS


def test_a_changed_file_of_targets_restarts_the_notifier(
    folder: Path, rendered: dict[str, list[dict[str, Any]]]
) -> None:
    changed = merged(SETS["everything"], {"notifier": {"targets": f"{TARGETS}# changed\n"}})
    after = {component(each): each for each in of(render(folder, changed), "Deployment")}
    before = {component(each): each for each in of(rendered["everything"], "Deployment")}
    same = {part for part, each in after.items() if each == before[part]}
    assert same == {"worker", "web"}


def test_a_changed_file_of_groups_restarts_its_readers(
    folder: Path, rendered: dict[str, list[dict[str, Any]]]
) -> None:
    changed = merged(SETS["everything"], {"files": {"groups": "restricted_outputs: {}\n"}})
    after = {component(each): each for each in of(render(folder, changed), "Deployment")}
    before = {component(each): each for each in of(rendered["everything"], "Deployment")}
    assert {part for part, each in after.items() if each == before[part]} == {"notifier"}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"worker": {"replica": 3}}, "replica"),
        ({"setings": {}}, "setings"),
        (
            {"settings": {"RAPPORT_KEEP_TEXTDAYS": 3}},
            "RAPPORT_KEEP_TEXTDAYS",
        ),
        (
            {"settings": {"RAPPORT_DATABASE_PASSWORD": "x"}},
            "RAPPORT_DATABASE_PASSWORD",
        ),
        ({"worker": {"terminationGracePeriodSeconds": 5}}, "terminationGracePeriodSeconds"),
        ({"worker": {"resources": {"limits": None}}}, "limits"),
        ({"kafka": {"brokers": ""}}, "kafka.brokers is not set: host:port of the brokers"),
        ({"kafka": {"brokers": "kafka"}}, "brokers"),
        ({"database": {"host": ""}}, "database.host is not set"),
        ({"secrets": {"existingSecret": ""}}, "secrets.existingSecret is not set"),
        ({"database": {"sslmode": "verify-ca"}}, "needs secrets.databaseCa.key"),
        ({"notifier": {"enabled": True}}, "notifier.targets is not set"),
        ({"web": {"ingress": {"enabled": True, "host": "a"}}}, "web.proxies is not set"),
        ({"web": {"oidc": {"issuer": "https://a", "clientId": "b"}}}, "web.externalUrl is not set"),
        ({"kafka": {"mechanism": "OAUTHBEARER"}}, "kafka.oauth.tokenUrl is not set"),
        (
            {"worker": {"autoscaling": {"by": "lag", "maxReplicas": 7}}},
            "worker.autoscaling.maxReplicas is 7 and kafka.partitions is 6",
        ),
    ],
)
def test_wrong_values_are_refused_in_words(
    folder: Path, changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(HelmFailed) as refused:
        render(folder, changes)
    assert words in str(refused.value)


def test_a_missing_helm_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(_: object) -> None:
        return None

    monkeypatch.setattr(helm_command, "INSTALLED", Path("/nowhere"))
    monkeypatch.setattr("shutil.which", none)
    with pytest.raises(HelmMissing, match="Helm 3 is not installed"):
        helm_command.helm("version")
