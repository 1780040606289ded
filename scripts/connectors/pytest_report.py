"""A plugin of pytest: writes each result, those of subtests too, as a line of JSON."""
import json
import os


def pytest_runtest_logreport(report):
    if report.passed and report.when != "call":
        return
    line = {"name": report.nodeid, "outcome": report.outcome, "text": "", "part": ""}
    if hasattr(report, "context"):
        line["part"] = str(report.context)
    if report.failed:
        line["text"] = report.longreprtext
    with open(os.environ["REPORT"], "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def pytest_collectreport(report):
    if report.failed:
        with open(os.environ["REPORT"], "a", encoding="utf-8") as file:
            file.write(json.dumps({"name": report.nodeid, "outcome": "failed", "part": "",
                                   "text": report.longreprtext}) + "\n")
