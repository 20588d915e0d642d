"""The files for Kubernetes, which nobody has run: they can be read, and agree with us."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.main import VERBS
from core.settings import IN_FILES, OPTIONS, load
from tests.deploy.front import DEPLOY
from tests.needs import missing, need

KUBERNETES = DEPLOY / "kubernetes"
KNOWN = {option.variable for option in OPTIONS} | {f"BIDKEEPER_{name.upper()}_FILE" for name in IN_FILES}
LEASED = {"manager", "gateway", "hooks"}


def objects() -> list[dict[str, Any]]:
    """Returns all objects of Kubernetes as they stand in the files."""
    files = [path for path in KUBERNETES.rglob("*.yaml") if path.name != "kustomization.yaml"]
    return [each for path in files for each in yaml.safe_load_all(path.read_text())]


def pods() -> Iterator[tuple[str, dict[str, Any]]]:
    for each in objects():
        if "template" in each.get("spec", {}):
            yield each["metadata"]["name"], each["spec"]["template"]["spec"]


def built(directory: str = ".") -> list[dict[str, Any]]:
    """Returns the objects as kubectl puts them together."""
    need("kubectl")
    done = subprocess.run(["kubectl", "kustomize", KUBERNETES / directory], capture_output=True, text=True, check=True)
    return list(yaml.safe_load_all(done.stdout))


def named(kind: str, found: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {each["metadata"]["name"]: each for each in found if each["kind"] == kind}


def test_kubernetes_takes_the_objects() -> None:
    validate = pytest.importorskip("kubernetes_validate", reason="Kubernetes' schemas are not installed: make test-ray")
    for each in [*objects(), *([] if missing("kubectl") else built())]:
        for version in ("1.33", "1.37"):
            validate.validate(each, version, strict=True)


def test_a_mistake_would_be_seen() -> None:
    validate = pytest.importorskip("kubernetes_validate", reason="Kubernetes' schemas are not installed: make test-ray")
    wrong = named("StatefulSet", objects())["manager"]
    wrong["spec"]["template"]["spec"]["shareProcessNamespaces"] = True
    with pytest.raises(validate.ValidationError, match="shareProcessNamespaces"):
        validate.validate(wrong, "1.37", strict=True)


def test_no_program_with_a_lease_is_process_1() -> None:
    seen = set()
    for name, pod in pods():
        programs = {container["args"][0] for container in pod["containers"]}
        seen |= programs
        assert pod.get("shareProcessNamespace") or not programs & LEASED, name
    assert seen >= LEASED


def test_every_pod_gives_its_rights_up() -> None:
    for name, pod in pods():
        assert pod["securityContext"]["runAsNonRoot"] and not pod["automountServiceAccountToken"], name
        for container in [*pod["containers"], *pod["initContainers"]]:
            kept = container["securityContext"]
            assert kept["readOnlyRootFilesystem"] and kept["capabilities"] == {"drop": ["ALL"]}, container["name"]
            assert not kept["allowPrivilegeEscalation"] and container["resources"]["limits"]["memory"]


def test_the_signer_is_nowhere() -> None:
    programs = {container["args"][0] for _, pod in pods() for container in pod["containers"]}
    assert programs <= VERBS.keys() and "signer" not in programs


def test_only_settings_that_there_are() -> None:
    of_pods = {entry["name"] for _, pod in pods() for each in pod["containers"] for entry in each.get("env", [])}
    given = set(named("ConfigMap", objects())["settings"]["data"]) | of_pods - {"SLOT", "ADDRESS"}
    assert given - KNOWN == set()
    assert "BIDKEEPER_SIGNER_HOST" in given


def test_standby_managers_are_others_of_the_same_slots() -> None:
    sets, budgets = named("StatefulSet", built()), named("PodDisruptionBudget", built())
    first, second = sets["manager"]["spec"], sets["manager-standby"]["spec"]
    assert first["replicas"] == second["replicas"]
    job = named("Job", built())["migrate"]["spec"]["template"]["spec"]["containers"][0]
    assert job["args"] == ["migrate", "--slots", str(first["replicas"])]
    for each in (first, second):
        labels = each["template"]["metadata"]["labels"]
        assert each["selector"]["matchLabels"].items() <= labels.items()
        (apart,) = each["template"]["spec"]["affinity"]["podAntiAffinity"][
            "requiredDuringSchedulingIgnoredDuringExecution"
        ]
        (expression,) = apart["labelSelector"]["matchExpressions"]
        # Both sets' pods, or the two of a slot could be on one node.
        assert apart["labelSelector"].keys() == {"matchExpressions"}
        assert labels[expression["key"]] in expression["values"]
    assert budgets["manager"]["spec"]["selector"] == {"matchLabels": first["selector"]["matchLabels"]}


def test_the_programs_take_the_settings(tmp_path: Path) -> None:
    (given,) = [each["data"] for each in objects() if each["metadata"]["name"] == "settings"]
    for name in ("satflow.key", "database-url"):
        (tmp_path / name).write_text("postgresql://localhost/bidkeeper")
    assert "BIDKEEPER_SATFLOW_URL" in given
    load({name: value.replace("/secrets", str(tmp_path)) for name, value in given.items()})


def test_the_image_runs_as_the_pods_user_by_number() -> None:
    """Kubernetes refuses `runAsNonRoot` for an image whose user is a name, where the pod gives no number."""
    image = (DEPLOY / "Dockerfile").read_text()
    users = [line.split()[1] for line in image.splitlines() if line.startswith("USER ")]
    assert {*users, *(str(pod["securityContext"]["runAsUser"]) for _, pod in pods())} == {"10001"}
    assert f"useradd --system --uid {users[0]} " in image
