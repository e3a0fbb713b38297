"""deploy/ calls kbroker as it wants to be called."""

from __future__ import annotations

import configparser
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from kbroker.cli import make_parser
from kbroker.config.settings import Settings
from kbroker.http.table import endpoints
from kbroker.observability.health import LONGEST_MS

DEPLOY = Path(__file__).parents[2] / "deploy"
DOCKERFILE = (DEPLOY / "Dockerfile").read_text()


def instruction(name: str) -> list[str]:
    """The value of an instruction in the last stage of the Dockerfile, of which there is one."""
    stage = DOCKERFILE[DOCKERFILE.rindex("FROM ") :]
    (value,) = re.findall(rf"^{name} (.*)$", stage, re.MULTILINE)
    return list(json.loads(value[value.index("[") :]))


def test_the_image_serves_and_checks_its_health() -> None:
    assert instruction("ENTRYPOINT") == ["kbroker"]
    served = make_parser().parse_args(instruction("CMD"))
    assert (served.host, served.data) == ("0.0.0.0", "/data")
    health = instruction("HEALTHCHECK")
    assert health[0] == "kbroker"
    checked = make_parser().parse_args(health[1:])
    assert (checked.command, checked.ready) == ("ping", True)
    assert checked.http == f"http://127.0.0.1:{served.http_port}"


def test_the_image_does_not_run_as_root_and_its_settings_are_known() -> None:
    assert re.search(r"^USER kbroker$", DOCKERFILE, re.MULTILINE)
    variables = dict(re.findall(r"^ENV (KBROKER_\w+)=(\S+)$", DOCKERFILE, re.MULTILINE))
    settings = Settings.load(environ=variables)
    assert settings.advertised_address("PLAINTEXT") == ("localhost", 9092)


def test_the_image_gets_what_the_package_is_made_of() -> None:
    lines = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    for line in lines:
        if line.startswith("!"):
            assert (DEPLOY.parent / line[1:]).exists(), line


@pytest.fixture
def unit() -> configparser.ConfigParser:
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(DEPLOY / "kbroker.service")
    return parser


def test_the_unit_serves_from_its_state_directory(unit: configparser.ConfigParser) -> None:
    service = unit["Service"]
    command, *arguments = service["ExecStart"].split()
    served = make_parser().parse_args(arguments)
    assert served.data == f"/var/lib/{service['StateDirectory']}"
    assert Path(command).name == "kbroker"
    assert service["Type"] == "notify"  # as tests/server/test_service_manager.py shows it


@pytest.fixture
def pod() -> dict[str, Any]:
    """The pod of the stateful set."""
    documents = list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text()))
    (found,) = (each for each in documents if each["kind"] == "StatefulSet")
    assert found["spec"]["replicas"] == 1
    return dict(found["spec"]["template"]["spec"])


def test_the_pod_serves_as_the_image_does_and_its_settings_are_known(pod: dict[str, Any]) -> None:
    (container,) = pod["containers"]
    assert container["args"] == instruction("CMD")
    assert container["volumeMounts"][0]["mountPath"] == "/data"
    settings = Settings.load(environ={each["name"]: each["value"] for each in container["env"]})
    assert settings.advertised_address("PLAINTEXT") == ("kbroker", 9092)
    assert 0 < settings["kbroker.drain.ms"] < pod["terminationGracePeriodSeconds"] * 1000
    assert f"useradd --uid {pod['securityContext']['runAsUser']} " in DOCKERFILE


def test_the_probes_of_the_pod_ask_what_there_is(pod: dict[str, Any]) -> None:
    (container,) = pod["containers"]
    ports = {each["name"]: each["containerPort"] for each in container["ports"]}
    served = make_parser().parse_args(container["args"])
    paths = {path for path, endpoint in endpoints() if endpoint.public}
    probes = {name: probe for name, probe in container.items() if name.endswith("Probe")}
    assert len(probes) == 3
    for probe in probes.values():
        assert probe["httpGet"]["path"] in paths
        assert ports[probe["httpGet"]["port"]] == int(served.http_port)
    readiness = probes["readinessProbe"]
    assert readiness["timeoutSeconds"] * 1000 > LONGEST_MS
    settings = Settings.load(environ={each["name"]: each["value"] for each in container["env"]})
    assert settings["kbroker.drain.ms"] > readiness["periodSeconds"] * readiness["failureThreshold"] * 1000


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_finds_nothing_wrong(tmp_path: Path) -> None:
    text = (DEPLOY / "kbroker.service").read_text().replace("/opt/kbroker/bin/kbroker", "/bin/true")
    copy = tmp_path / "kbroker.service"
    copy.write_text(text)
    done = subprocess.run(
        ["systemd-analyze", "verify", str(copy)], capture_output=True, text=True, timeout=60, check=False
    )
    assert "kbroker.service" not in done.stderr, done.stderr
