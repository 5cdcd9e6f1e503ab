"""The profile `observability`: what its files name is there, and what they ask for is what hango sends.

No container engine is needed: files are read, and names are compared with the closed tables of telemetry.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from hango.domain import Purpose, RunStatus
from hango.runs import RunError
from hango.telemetry.names import COUNTERS, GAUGES, HISTOGRAMS, Attr, Event, Metric, Span
from hango.tries import TryError, TryStatus
from hango.workers.counting import Reconciled, ToolError

ROOT = Path(__file__).resolve().parents[2]
OBSERVERS = {"collector", "tempo", "prometheus", "grafana"}
PAGE = (ROOT / "docs/telemetry.md").read_text()
DASHBOARD: dict[str, Any] = json.loads((ROOT / "deploy/grafana/hango.json").read_text())
PANELS: list[dict[str, Any]] = DASHBOARD["panels"]
# As Prometheus names what comes by OTLP with the strategy that deploy/prometheus.yaml chooses.
SPELLED = {
    Metric.CONTEXT_INSPECT_DURATION: "hango_context_inspect_duration_seconds_bucket",
    Metric.CONTEXT_OVERRIDES_ACTIVE: "hango_context_overrides_active",
    Metric.TRY: "hango_context_try_total",
    Metric.TRY_WAIT: "hango_context_try_wait_duration_seconds_bucket",
    Metric.TRY_CALL: "hango_context_try_call_duration_seconds_bucket",
    Metric.TRY_RECONCILED: "hango_context_try_reconciled_total",
    Metric.TRY_DRIFT: "hango_context_try_drift",
    Metric.SUMMARY_PREVIEW: "hango_summary_preview_total",
    Metric.RUN: "hango_run_total",
    Metric.RUN_CALL: "hango_run_call_duration_seconds_bucket",
    Metric.CACHE_READ_RATIO: "hango_cache_read_ratio",
    Metric.TOKENS: "hango_usage_tokens_total",
    Metric.COST: "hango_usage_cost_total",
    Metric.POISON: "hango_queue_poison_total",
}
LABELS = {attr.replace(".", "_") for attr in Attr}
ANY = ".+"  # that there is a value
# What may stand in quotes beside an attribute of a closed set.
VALUES: dict[str, set[str]] = {
    Attr.TRY_OUTCOME: {*TryStatus},
    Attr.RUN_STATUS: {*RunStatus},
    Attr.PURPOSE: {*Purpose},
    Attr.ERROR_TYPE: {*TryError, *RunError, *ToolError},
}


def read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / name).read_text())
    return found


COMPOSE = read("docker-compose.yml")["services"]


def laid_over(below: Any, above: Any) -> Any:
    """As the collector merges its files: members of mappings one by one, all else is replaced."""
    if isinstance(below, dict) and isinstance(above, dict):
        return below | {name: laid_over(below.get(name), value) for name, value in above.items()}
    return above


def traceql() -> Iterator[str]:
    """Every query of the page and of the dashboard."""
    yield from re.findall(r"^```traceql\n(.*?)\n```$", PAGE, re.MULTILINE | re.DOTALL)
    yield from (target["query"] for panel in PANELS for target in panel.get("targets", []) if "query" in target)


def promql() -> Iterator[tuple[str, str]]:
    """Every query of the dashboard, with its legend."""
    for panel in PANELS:
        yield from ((one["expr"], one["legendFormat"]) for one in panel.get("targets", []) if "expr" in one)


def test_the_profile_is_all_that_is_optional() -> None:
    """One profile, `observability`; its images are pinned to a release, and only this machine reaches its ports."""
    optional = {name: one["profiles"] for name, one in COMPOSE.items() if "profiles" in one}
    ports = [port for name in OBSERVERS for port in COMPOSE[name].get("ports", [])]

    assert optional == {name: ["observability"] for name in OBSERVERS}
    assert [
        COMPOSE[name]["image"] for name in OBSERVERS if not re.search(r":v?\d+\.\d+\.\d+$", COMPOSE[name]["image"])
    ] == []
    assert len(ports) == 2
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_nobody_must_set_a_variable_for_a_profile_that_they_do_not_use() -> None:
    """A variable that must be set is asked for even when its service does not start."""
    assert [name for name in OBSERVERS if ":?" in json.dumps(COMPOSE[name])] == []


@pytest.mark.parametrize("files", [["collector"], ["collector", "langfuse"]])
def test_pipelines_name_what_is_defined(files: list[str]) -> None:
    """Each receiver, processor and exporter of a pipeline is defined, each that is defined is used."""
    config: dict[str, Any] = {}
    for file in files:
        config = laid_over(config, read(f"deploy/{file}.yaml"))
    pipelines = config["service"]["pipelines"]

    assert set(pipelines) == {"traces", "metrics"}
    for kind in ("receivers", "processors", "exporters"):
        assert {name for pipeline in pipelines.values() for name in pipeline[kind]} == set(config[kind])
        assert {name.partition("/")[0] for name in config[kind]} <= {"otlp", "memory_limiter", "batch", "otlp_http"}
    assert "otlp_http/langfuse" not in pipelines["metrics"]["exporters"]


def test_each_hands_on_to_one_that_listens() -> None:
    """hango's endpoint, the collector's exporters and Grafana's sources name a service of the file and its port."""
    collector, tempo = read("deploy/collector.yaml"), read("deploy/tempo.yaml")
    listens = {
        ("collector", port_of(collector["receivers"]["otlp"]["protocols"]["http"]["endpoint"])),
        ("tempo", port_of(tempo["distributor"]["receivers"]["otlp"]["protocols"]["http"]["endpoint"])),
        ("tempo", tempo["server"]["http_listen_port"]),
        ("prometheus", 9090),  # its default
    }
    sources = read("deploy/grafana/datasources.yaml")["datasources"]
    asked = [one["endpoint"] for one in collector["exporters"].values()] + [one["url"] for one in sources]
    (advised,) = set(re.findall(r"HANGO_OTLP_ENDPOINT=(http://collector\S*)", PAGE))

    parts = [urlsplit(url) for url in [*asked, advised]]
    assert {(part.hostname, part.port) for part in parts} == listens
    assert collector["exporters"]["otlp_http/prometheus"]["endpoint"].endswith("/api/v1/otlp")
    assert {"--web.enable-otlp-receiver", "--enable-feature=created-timestamp-zero-ingestion"} <= {
        *COMPOSE["prometheus"]["command"]
    }
    assert read("deploy/prometheus.yaml")["otlp"] == {"translation_strategy": "UnderscoreEscapingWithSuffixes"}


def port_of(address: str) -> int:
    return int(address.rpartition(":")[2])


def test_what_is_kept_lies_on_a_volume() -> None:
    """Traces, metrics and Grafana's own survive the containers."""
    volumes = read("docker-compose.yml")["volumes"]
    kept = {
        name: [one.split(":")[1] for one in COMPOSE[name]["volumes"] if one.split(":")[0] in volumes]
        for name in OBSERVERS
    }
    trace = read("deploy/tempo.yaml")["storage"]["trace"]

    assert kept == {
        "collector": [],
        "tempo": ["/var/tempo"],
        "prometheus": ["/prometheus"],
        "grafana": ["/var/lib/grafana"],
    }
    assert all(path.startswith("/var/tempo/") for path in (trace["wal"]["path"], trace["local"]["path"]))


def test_the_dashboard_is_provisioned() -> None:
    """Its folder is where its file is mounted; its panels ask sources that are there, and do not overlap."""
    (provider,) = read("deploy/grafana/dashboards.yaml")["providers"]
    mounted = [one.split(":") for one in COMPOSE["grafana"]["volumes"]]
    home = COMPOSE["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    sources = {(one["type"], one["uid"]) for one in read("deploy/grafana/datasources.yaml")["datasources"]}
    asked = {(one["datasource"]["type"], one["datasource"]["uid"]) for one in PANELS if one["type"] != "row"}
    ids = [panel["id"] for panel in PANELS]
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in PANELS)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]

    assert home.rpartition("/")[0] == provider["options"]["path"]
    assert ["./deploy/grafana/hango.json", home, "ro"] in mounted
    assert asked == sources
    assert (len(set(ids)), len(set(cells))) == (len(ids), len(cells))


def test_metrics_are_spelled_as_prometheus_does() -> None:
    """Dots are underscores; a unit in braces is dropped; a counter ends with `total`, a share with `ratio`."""
    assert {name: spelled(name) for name in Metric} == SPELLED


def spelled(name: Metric) -> str:
    words = re.split(r"[._]", name)
    if name in HISTOGRAMS:
        assert HISTOGRAMS[name].unit == "s"
        return "_".join([*words, "seconds", "bucket"])
    if name in COUNTERS:
        assert re.fullmatch(r"{\w+}", COUNTERS[name].unit)
        return "_".join([*words, "total"])
    if GAUGES[name].unit == "1":
        return "_".join([*(word for word in words if word != "ratio"), "ratio"])
    assert re.fullmatch(r"{\w+}", GAUGES[name].unit)
    return "_".join(words)


@pytest.mark.parametrize(("query", "legend"), list(promql()))
def test_the_dashboard_asks_for_metrics_that_hango_sends(query: str, legend: str) -> None:
    """Every metric is of the closed table, every label an attribute; the legend shows labels that are left."""
    grouped = {label for group in re.findall(r"by \(([^)]*)\)", query) for label in group.split(", ")}
    matched = re.findall(r'(\w+)=~?"([^"]*)"', query)
    labels = grouped | {label for label, _ in matched}
    names = set(re.findall(r"\b(?:hango|gen_ai)_\w+", query)) - labels

    assert len(names) == 1
    assert names <= set(SPELLED.values())
    assert labels <= LABELS | {"le"}
    assert ("le" in grouped) == names.pop().endswith("_bucket")
    assert set(re.findall(r"{{(\w+)}}", legend)) <= grouped
    kinds = {value for label, value in matched if label == "hango_context_try_kind"}
    assert kinds <= {*Reconciled}


def test_every_metric_is_on_the_dashboard() -> None:
    """What is measured is shown."""
    shown = {name for query, _ in promql() for name in SPELLED.values() if re.search(rf"\b{name}\b", query)}

    assert shown == set(SPELLED.values())


def test_the_page_spells_metrics_as_prometheus_does() -> None:
    """Names with underscores on the page are those of the closed table."""
    named = set(re.findall(r"`(hango_\w+)`", PAGE))

    assert named
    assert named <= set(SPELLED.values())


@pytest.mark.parametrize("query", list(traceql()))
def test_traceql_asks_for_what_hango_sends(query: str) -> None:
    """Attributes, spans, events and values are those of the closed tables; nothing else is in a query but operators."""
    bare = re.sub(r'"[^"]*"', "TEXT", query)
    rest = re.sub(r"span\.[\w.]+|event:name|\bname\b|\b(?:select|by|sum|true)\b|TEXT|\d+(?:\.\d+)?", " ", bare)
    spans = {name for names in re.findall(r'(?<![\w:])name =~? "([^"]*)"', query) for name in names.split("|")}

    assert set(re.findall(r"span\.([\w.]+)", bare)) <= {*Attr}
    assert {name.removesuffix(" .+") for name in spans} <= {*Span}
    assert set(re.findall(r'event:name = "([^"]*)"', query)) <= {*Event}
    for attribute, texts in re.findall(r'span\.([\w.]+) !?=~? "([^"]*)"', query):
        assert texts == ANY or set(texts.split("|")) <= VALUES.get(attribute, set(texts.split("|")))
    assert set(rest.split()) <= {"{", "}", "(", ")", "),", ",", "&&", "||", ">>", "|", "=", "!=", "=~", ">", "<"}
    assert [bare.count(one) for one in "{("] == [bare.count(one) for one in "})"]


def test_langfuse_is_asked_with_its_header() -> None:
    """Its OTLP address and the authorization of its project come from the environment, and must be given."""
    environment = read("deploy/langfuse.compose.yml")["services"]["collector"]["environment"]
    exporter = read("deploy/langfuse.yaml")["exporters"]["otlp_http/langfuse"]

    assert environment["LANGFUSE_AUTHORIZATION"].startswith("${LANGFUSE_AUTHORIZATION:?")
    assert environment["LANGFUSE_OTLP_ENDPOINT"].endswith("/api/public/otel}")
    assert (exporter["endpoint"], exporter["headers"]["Authorization"]) == tuple(
        f"${{env:{name}}}" for name in ("LANGFUSE_OTLP_ENDPOINT", "LANGFUSE_AUTHORIZATION")
    )
