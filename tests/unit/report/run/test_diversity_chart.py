import re

from hand_made import PROBLEM, failed, node, passed, run_info
from rich.console import Console

from adaexplore.report import summarize
from adaexplore.report.run.diversity import HEIGHT, WIDTH, DiversityPoint, lines, sentence
from adaexplore.report.run.html import render
from adaexplore.report.run.terminal import headline

POINTS = [
    DiversityPoint(1, 1, None),
    DiversityPoint(None, 1, None),
    DiversityPoint(2, 2, 0.5),
    DiversityPoint(1, 2, 0.25),
]
NODES = [node(1, passed(1.1)), node(2, failed()), node(3, passed(1.3)), node(4, passed(1.2))]


def test_the_sentence_sums_up_diversity():
    assert sentence(POINTS, 1) == "2 structures in 3 correct kernels, 1 repeat, mean distance 0.25"
    assert sentence(POINTS[:1], 0) == "1 structure in 1 correct kernel"
    assert sentence(POINTS[1:2], 0) == sentence([], 0) == ""


def test_lines_stay_on_the_chart_and_end_at_the_last_step():
    structures, distance = lines(POINTS * 300)
    for line in (structures, distance):
        places = [
            tuple(map(float, pair.split())) for pair in re.findall(r"[\d.]+ [\d.]+", line.path)
        ]
        assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in places)
        assert len(places) < 500
    assert structures.path.endswith(str(structures.label_y))
    assert distance.label_y - structures.label_y >= 16


def test_nothing_is_drawn_without_a_correct_kernel():
    assert lines([]) == lines([DiversityPoint(None, 0, None)]) == []


def test_the_report_and_the_terminal_show_it():
    summary = summarize(PROBLEM, NODES, run_info(), diversity=POINTS)
    page = render(summary)
    assert 'id="diversity-title"' in page
    assert '"structure":2' in page
    console = Console(width=200)
    with console.capture() as shown:
        console.print(headline(summary))
    assert "diversity: 2 structures in 3 correct kernels" in shown.get()
    without = summarize(PROBLEM, NODES, run_info())
    assert 'id="diversity-title"' not in render(without)
