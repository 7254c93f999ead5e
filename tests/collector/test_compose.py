"""deploy/compose.yaml without a container engine: its keys and names are right, Caddy reads its
file, and the collector runs with its words and its environment, over a real PostgreSQL.
"""

import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
from pathlib import Path
from string import Template

import pytest
import yaml
from checks import must_fail
from collecting import DEADLINE, DISCREET, until
from postgres import GROUP

import discreet as d
from discreet.device.ledger import Ledger

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
# of the Compose Specification, what this file uses: the keys, and whether a value is a list
TOP = {"name", "services", "volumes", "networks"}
SERVICE = {
    "image": str, "build": dict, "restart": str, "command": list, "environment": dict,
    "volumes": list, "networks": list, "ports": list, "depends_on": dict, "healthcheck": dict,
    "read_only": bool, "tmpfs": list, "cap_drop": list, "cap_add": list, "security_opt": list,
    "stop_grace_period": str, "logging": dict,
}  # fmt: skip
HEALTH = {"test", "interval", "timeout", "retries"}
CONDITIONS = {"service_started", "service_healthy", "service_completed_successfully"}


def compose():
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))


def check_services(file):
    """Every key is one of Compose, and what a service names is there."""
    assert file.keys() <= TOP
    for service in file["services"].values():
        assert service.keys() <= SERVICE.keys()
        assert all(isinstance(value, SERVICE[key]) for key, value in service.items())
        assert ("image" in service) != ("build" in service)
        assert re.search(r":\d", service.get("image", ":1"))  # a version, not the latest
        assert set(service.get("networks", [])) <= file["networks"].keys()
        assert service.get("healthcheck", {}).keys() <= HEALTH
        for name, needed in service.get("depends_on", {}).items():
            assert name in file["services"] and needed["condition"] in CONDITIONS
        for mount in service.get("volumes", []):
            source, target, *mode = mount.split(":")
            assert target.startswith("/") and mode in ([], ["ro"])
            assert source.startswith("./") or source in file["volumes"]


def test_the_file_is_one_of_compose():
    file = compose()
    check_services(file)
    for change in (
        {"imagee": "postgres:17"},
        {"image": "postgres"},
        {"networks": ["elsewhere"]},
        {"depends_on": {"nobody": {"condition": "service_healthy"}}},
        {"volumes": ["nowhere:/data"]},
    ):
        services = file["services"] | {"database": file["services"]["database"] | change}
        must_fail(check_services, file | {"services": services})


def test_what_it_mounts_and_builds_is_there():
    file = compose()["services"]
    mounted = [mount.split(":")[0] for x in file.values() for mount in x.get("volumes", [])]
    beside = {source.removeprefix("./") for source in mounted if source.startswith("./")}
    assert beside == {"survey.toml", "Caddyfile.compose"}  # the organiser's own, and ours
    assert (DEPLOY / "Caddyfile.compose").exists()
    assert (DEPLOY / file["collector"]["build"]["context"] / "Dockerfile").exists()
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    assert {"/deploy/.env", "/deploy/survey.toml"} <= set(ignored)


def variables(text):
    return dict(re.findall(r"^([A-Z_]+)=(.*)$", text, re.MULTILINE))


def test_every_variable_is_in_the_example():
    asked = re.findall(r"\$\{(\w+):\?", (DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
    example = variables((DEPLOY / "environment.example").read_text(encoding="utf-8"))
    assert set(asked) == example.keys()
    assert example["DATABASE_PASSWORD"] == ""  # nobody starts with a password from a manual


def test_the_parts_meet():
    """Names, ports and users of the three services are those of each other."""
    file = compose()["services"]
    store = file["collector"]["environment"]["DISCREET_STORE"]
    password = "${DATABASE_PASSWORD:?write DATABASE_PASSWORD into .env}"
    own = file["database"]["environment"]
    assert own["POSTGRES_PASSWORD"] == password
    wanted = f"postgresql://{own['POSTGRES_USER']}:{password}@database/{own['POSTGRES_DB']}"
    assert store == wanted
    exposed = re.search(r"^EXPOSE (\d+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)[1]
    proxy = (DEPLOY / "Caddyfile.compose").read_text(encoding="utf-8")
    assert f"reverse_proxy collector:{exposed} {{" in proxy
    shared = set(file["collector"]["networks"])
    assert shared & set(file["proxy"]["networks"]) and shared & set(file["database"]["networks"])
    assert compose()["networks"]["inside"] == {"internal": True}
    assert [name for name, x in file.items() if "ports" in x] == ["proxy"]


HEAD = (
    "# /etc/caddy/Caddyfile: TLS in front of the collector. Caddy gets the certificate by itself."
)
CHANGES = {
    HEAD: (
        "# The proxy of compose.yaml: deploy/Caddyfile with three changes. The host name comes "
        "from .env, the\n# collector is another container, and Caddy is newer than 2.6.4."
    ),
    "survey.example.org {": "{$SURVEY_HOST} {",
    "127.0.0.1:8000": "collector:8000",
    "collector (from Caddy 2.6.4 on, write `request_buffers 8MiB` instead of these two)\n"
    "\t\tbuffer_requests\n\t\tmax_buffer_size 8MiB\n": "collector\n\t\trequest_buffers 8MiB\n",
}


def test_its_proxy_is_that_of_the_guide():
    text = (DEPLOY / "Caddyfile").read_text(encoding="utf-8")
    for old, new in CHANGES.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    assert text == (DEPLOY / "Caddyfile.compose").read_text(encoding="utf-8")


def check_caddyfile(text, folder):
    path = folder / "Caddyfile"
    path.write_text(text, encoding="utf-8")
    command = ["caddy", "validate", "--config", str(path), "--adapter", "caddyfile"]
    home = {"HOME": str(folder), "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    environment = os.environ | home | {"SURVEY_HOST": "survey.example.org"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(shutil.which("caddy") is None, reason="caddy is not installed")
def test_caddy_reads_it(tmp_path):
    """Debian's Caddy 2.6.2 has older words for one line, which are those of deploy/Caddyfile."""
    version = subprocess.run(["caddy", "version"], capture_output=True, text=True).stdout
    text = (DEPLOY / "Caddyfile.compose").read_text(encoding="utf-8")
    if tuple(map(int, re.findall(r"\d+", version)[:3])) < (2, 6, 4):
        text = text.replace("request_buffers 8MiB", "buffer_requests\n\t\tmax_buffer_size 8MiB")
    check_caddyfile(text, tmp_path)
    must_fail(check_caddyfile, text.replace("dial_timeout", "dial_timeot"), tmp_path)


# ---- the collector, with its words and its environment -------------------------------------------


def entry_point():
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    return json.loads(re.search(r"^ENTRYPOINT (.*)$", text, re.MULTILINE)[1])


def substituted(value, given):
    """As Compose fills in ${NAME:?message}."""
    return Template(re.sub(r"\$\{(\w+):\?[^}]*\}", r"${\1}", value)).substitute(given)


@GROUP
def test_the_collector_runs_as_the_file_says(tmp_path, database):
    pytest.importorskip("uvicorn")
    service = compose()["services"]["collector"]
    given = {"SURVEY_HOST": "survey.example.org", "DATABASE_PASSWORD": "0123abcd"}
    environment = {k: substituted(v, given) for k, v in service["environment"].items()}
    assert environment["DISCREET_STORE"] == "postgresql://discreet:0123abcd@database/discreet"
    environment["DISCREET_STORE"] = database  # only the address is another
    shutil.copy(ROOT / "src" / "discreet" / "data" / "toy.toml", tmp_path / "survey.toml")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [*entry_point(), *service["command"], "--port", str(port)]
    command = [
        {"discreet": str(DISCREET), "/survey.toml": "survey.toml"}.get(x, x) for x in command
    ]
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            command, cwd=tmp_path, env=os.environ | environment, stdout=log, stderr=log
        )
    try:
        written = tmp_path / "log"
        until(lambda: "Collecting" in written.read_text("utf-8"), shlex.join(command))
        link = re.search(r"invitation +(\S+)", written.read_text(encoding="utf-8"))[1]
        assert link.startswith("https://survey.example.org/c/toy-survey#")
        client = d.Client(f"http://127.0.0.1:{port}", Ledger(tmp_path / "ledger.json"))
        receipt = client.answer("toy-survey", "HIV", fingerprint=link.partition("#")[2])
        assert receipt.accepted == 1
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE) == 0
    finally:
        process.kill()
        process.wait(DEADLINE)
    assert (tmp_path / "discreet.token").exists() and not list(tmp_path.glob("*.sqlite"))
