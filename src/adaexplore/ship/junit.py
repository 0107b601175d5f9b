"""The result of a check as a JUnit file, which CI services show."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from adaexplore.core.files import write_whole
from adaexplore.ship.check import Checked


def write_junit(checked: Checked, file: Path) -> None:
    """Write a test case for each finding."""
    findings = checked.findings
    suite = ElementTree.Element(
        "testsuite",
        name=checked.name,
        tests=str(len(findings)),
        failures=str(sum(bool(each.failure) for each in findings)),
    )
    for each in findings:
        case = ElementTree.SubElement(
            suite, "testcase", classname=checked.name, name=f"{each.workload} {each.claim}"
        )
        if each.failure:
            ElementTree.SubElement(case, "failure", message=each.failure)
    write_whole(file, ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True))
