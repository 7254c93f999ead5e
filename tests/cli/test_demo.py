"""The demonstration: its example policies, its made-up answers, its story, and its collector."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request

import numpy as np
import pytest

import discreet as d
from discreet.arrays import theory
from discreet.cli import demo
from discreet.data.examples import example, made_up_answers


def test_examples():
    survey, toy = example("health-survey"), example("toy")
    assert (survey.m, len(survey.levels)) == (41, 3) and survey.index["HIV"] >= 0
    assert [level.budget.text for level in toy.levels] == ["ln(4)", "ln(6)"] and toy.m == 5


def test_the_story(capsys):
    demo.run(serve=False)
    text = " ".join(capsys.readouterr().out.split())
    for chapter in ("1. A health survey: 41 conditions", "2. 100,000 simulated participants",
                    "3. The paper's own survey: five answers"):  # fmt: skip
        assert chapter in text
    assert "4. The same, live" not in text
    mechanism = d.design(example("health-survey"))
    gain = re.search(
        r"total squared error (\d+)% below the best plain-LDP mechanism \((\w+)\)", text
    )
    best = d.design(mechanism.policy, gain[2])
    assert int(gain[1]) == round(100 * (1 - mechanism.expected_mse() / best.expected_mse()))
    told = re.findall(r"(\w+): ± ([\d,]+) people \(([\d.]+)%\)", text)
    share = np.sqrt(theory.level_variance(mechanism) / demo.USERS)  # one standard error
    assert told == [
        (level.name, f"{x * demo.USERS:,.0f}", f"{100 * x:.2f}")
        for level, x in zip(mechanism.policy.levels, share)
    ]
    first = mechanism.policy.items[made_up_answers(mechanism.policy, demo.USERS)[0]]
    report = re.search(rf"One answered '{first}'; their phone sent ([0-9a-f]+)\.", text)[1]
    assert mechanism.coder.refusal(bytes.fromhex(report)) is None
    inside = int(re.search(r"(\d+) of 41 intervals hold the truth", text)[1])
    assert inside >= 29  # 95 % each: fewer with a chance below 1e-6
    assert "toy-survey: 5 items in 2 levels" in text


@pytest.fixture
def served(tmp_path):
    """`discreet demo` in a process of its own: the links that it prints, until it is stopped; then
    nothing of it stays.
    """
    pytest.importorskip("uvicorn")
    process = subprocess.Popen(
        [sys.executable, "-c", "from discreet.cli import demo; demo.run()"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1", "TMPDIR": str(tmp_path)},
    )
    watch = threading.Timer(120, process.kill)
    watch.start()
    try:
        links = []
        for line in process.stdout:
            links += re.findall(r"http://127\.0\.0\.1:\d+/\S+", line)
            if "Stop with Ctrl-C." in line:
                break
        assert len(list(tmp_path.iterdir())) == 1
        yield links
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        watch.cancel()
    assert list(tmp_path.iterdir()) == []


def fetch(url):
    with urllib.request.urlopen(url, timeout=30) as answer:
        return answer.read()


def test_the_collector_is_live_and_people_arrive(served):
    survey, toy = (
        d.Survey(name, [d.design(example(name.replace("toy-survey", "toy")))])
        for name in ("health-survey", "toy-survey")
    )
    base = served[0].partition("/c/")[0]
    assert served == [
        f"{base}/c/health-survey/results",
        f"{base}/c/health-survey#{survey.fingerprint}",
        f"{base}/c/toy-survey#{toy.fingerprint}",
        f"{base}/desk",
    ]
    seen, end = [0], time.monotonic() + 60
    while len(seen) < 4:
        assert time.monotonic() < end
        try:
            n = json.loads(fetch(f"{base}/v1/collections/health-survey/estimate"))["n"]
        except OSError:
            n = 0
        if n > seen[-1]:
            seen.append(n)
        time.sleep(0.1)
    assert seen[1] >= 20
    assert all(b"<html" in fetch(served[k]).lower() for k in (0, 2, 3))
    students = json.loads(fetch(f"{base}/v1/collections/student-life-rehearsal"))
    assert len(students["survey"]["questions"]) == 3
    while time.monotonic() < end:
        if json.loads(fetch(f"{base}/v1/collections/student-life-rehearsal/estimate"))["n"]:
            break
        time.sleep(0.1)
    else:
        pytest.fail("nobody answers the three questions")
