import re
from dataclasses import replace

import pytest
import torch
from asked import (
    CPU,
    ESTIMATED,
    FACTS,
    FAILED,
    H200,
    REFERENCE,
    module,
    node,
    setting,
    text,
)

from adaexplore.core.errors import BadInputError
from adaexplore.core.evaluation import Estimate, Failed, Mismatch
from adaexplore.core.feedback import render, verdict
from adaexplore.core.problem import LANGUAGES, Checks
from adaexplore.core.units import estimated_tokens
from adaexplore.evaluate.kernels.targets import TARGETS
from adaexplore.evaluate.offline.estimate import LAUNCH_US
from adaexplore.evaluate.truth.precision import FLOOR, NORM_FACTOR, floors
from adaexplore.propose.model.patches import parse_patches
from adaexplore.propose.model.prompts import OWN, SHARED, TEMPLATES, Prompts, read_prompts
from adaexplore.propose.model.strategies import CATALOGUE, strategies_for

PROMPTS = Prompts()
POOL = [node(1), node(2, origin="compiler")]
FORMS = {
    "large": lambda s: PROMPTS.large(s, POOL),
    "large, first": lambda s: PROMPTS.large(s, []),
    "strategy": lambda s: PROMPTS.strategy(s, POOL),
    "with strategy": lambda s: PROMPTS.large_with_strategy(s, POOL, "fusion", "Fuse the relu."),
    "contrastive": lambda s: PROMPTS.contrastive(s, *POOL),
    "reviser": lambda s: PROMPTS.reviser(s, [*POOL, node(3)]),
    "tuner": lambda s: PROMPTS.tuner(s, [*POOL, node(3)], "1. Use larger tiles."),
    "repair": lambda s: PROMPTS.repair(s, node(3, FAILED)),
}
WRITING = [form for form in FORMS if form not in ("strategy", "reviser")]


@pytest.fixture(params=FORMS)
def form(request):
    return FORMS[request.param]


class TestEveryPrompt:
    def test_the_reference_is_in_it_once_and_to_the_letter(self, form):
        assert text(form(setting())).count(REFERENCE.rstrip()) == 1

    def test_it_is_a_system_message_and_a_question(self, form):
        assert [m.role for m in form(setting()).messages] == ["system", "user"]

    def test_what_the_user_demands_is_in_it_once(self, form):
        assert text(form(setting(demand="use atomics."))).count("use atomics.") == 1
        assert "is to do this" not in text(form(setting()))

    def test_its_sections_are_all_of_it(self, form):
        prompt = form(setting(rules=["Never do that."]))
        first, *others = prompt.sections
        assert prompt.messages[0].text == first.text
        assert prompt.messages[1].text == "\n\n".join(section.text for section in others)
        assert len(prompt.costs) == len(prompt.sections)
        total = sum(estimated_tokens(message.text) for message in prompt.messages)
        assert sum(prompt.costs.values()) == pytest.approx(total, abs=2 * len(prompt.sections))

    def test_what_does_not_change_comes_first(self, form):
        several = [form(setting()), PROMPTS.large(setting(), [])]
        begins = [[section.text for section in prompt.sections[:2]] for prompt in several]
        assert begins[0] == begins[1]

    @pytest.mark.parametrize("language", LANGUAGES)
    @pytest.mark.parametrize("precision", ["fp32", "tf32", "half"])
    def test_it_can_be_made_of_little_knowledge(self, form, language, precision):
        unknown = {"roofline": None, "errors": {}, "baselines_us": {}, "outputs": []}
        for environment in ({"device": "cuda:0"}, {"device": "cpu"}):
            asked = form(
                setting(
                    language=language, precision=precision, environment=environment, facts=unknown
                )
            )
            facts = [s.text for s in asked.sections if s.name in ("problem", "hardware")]
            assert not re.search(r"\b(None|0 (MiB|GiB|threads))\b", "".join(facts))

    def test_it_is_tidy(self, form):
        told = text(form(setting(rules=["Never do that."])))
        assert "\n\n\n\n" not in told
        assert told == told.strip()

    @pytest.mark.parametrize("writing", WRITING)
    def test_who_writes_is_told_the_rules_and_the_pitfalls(self, writing):
        told = text(FORMS[writing](setting(rules=["Never use a hammer."])))
        assert "- Never use a hammer." in told
        assert "# Triton 3.6.0" in told

    def test_a_language_without_notes_is_refused(self, form):
        with pytest.raises(BadInputError, match="'cobol'; known: triton, cuda, helion, cpp"):
            form(setting(language="cobol"))


class TestSystem:
    def test_it_is_short(self):
        for language in LANGUAGES:
            assert PROMPTS.large(setting(language=language), []).costs["system"] < 700

    def test_who_must_do_the_work_follows_the_problem(self):
        free, strict = (
            PROMPTS.large(setting(checks=Checks(require_custom=r)), []).messages[0].text
            for r in (False, True)
        )
        assert "may do what they do best" in free
        assert "may do what they do best" not in strict
        assert "Its own kernels do the work" in strict

    def test_what_holds_on_gpus_only_is_not_told_on_a_cpu(self):
        told = PROMPTS.large(setting(language="cpp", environment=CPU), []).messages[0].text
        assert "stream" not in told
        assert "L2" not in told

    def test_without_the_gpu_it_is_told_how_times_are_estimated_and_that_sizes_change(self):
        def told(**changes):
            return PROMPTS.repair(setting(**changes), node(3, FAILED)).messages[0].text

        without, with_gpu = told(environment=CPU, target="sm_90"), told()
        assert "an estimate, for no such GPU is at hand" in without
        assert "mask every edge" in without
        assert "measured in turns" not in without
        assert "measured in turns" in with_gpu
        assert "mask every edge" not in with_gpu


class TestPrecision:
    @pytest.mark.parametrize("precision", ["fp32", "tf32", "half"])
    def test_the_figures_are_the_evaluators(self, precision):
        told = text(PROMPTS.large(setting(precision=precision), []))
        floor = f"{FLOOR[precision]:.2g}".replace("e-0", "e-").replace("0.00098", "9.8e-4")
        assert floor.replace("0.0039", "3.9e-3") in told
        factor = {4.0: "4 times", 2.0: "twice"}[NORM_FACTOR[precision]]
        assert f"Allowed is {factor} PyTorch's own error" in told

    @pytest.mark.parametrize("precision", ["fp32", "tf32", "half"])
    def test_an_output_of_16_bits_is_allowed_what_it_rounds_to(self, precision):
        outputs = [{"path": "output", "shape": [64], "dtype": "bfloat16"}]
        facts, both = {"outputs": outputs}, {"outputs": [*outputs, *FACTS["outputs"]]}
        told = text(PROMPTS.large(setting(precision=precision, facts=facts), []))
        assert (
            f"{floors(torch.bfloat16, own=True)[precision]:.2g}".replace("0.0039", "3.9e-3") in told
        )
        assert "is a wrong result" not in told
        assert "has 16 bits" not in text(
            PROMPTS.large(setting(precision=precision, facts=both), [])
        )

    def test_what_a_launch_costs_in_an_estimate_is_told(self):
        told = text(PROMPTS.large(setting(environment=CPU, target="sm_90"), []))
        assert f"costs {LAUNCH_US:.0f} µs" in told

    def test_pytorchs_own_error_is_told(self):
        assert "PyTorch in strict fp32 is off by 1.6e-6 here" in text(PROMPTS.large(setting(), []))


class TestHardware:
    def test_figures_measured_and_from_the_sheet(self):
        told = text(PROMPTS.large(setting(), []))
        assert "NVIDIA H200, compute capability 9.0, 132 multiprocessors, 227 KiB" in told
        assert "Data sheet: 4.80 TB/s" in told
        assert "copies at 4.00 TB/s" in told
        assert "51.0 TFLOP/s (fp32), 380 TFLOP/s (tf32)" in told
        assert "no less than 100 µs, bound by memory" in told
        assert "eager 577 µs (5.77× the bound), torch.compile 571 µs (5.71× the bound)" in told

    def test_a_gpu_without_a_sheet_is_told_as_measured(self):
        other = {**H200, "gpu": "NVIDIA Something", "compute_capability": "11.3"}
        told = text(PROMPTS.large(setting(environment=other), []))
        assert "NVIDIA Something, compute capability 11.3" in told
        assert "copies at 4.00 TB/s" in told
        assert "Data sheet" not in told

    def test_a_cpu_has_threads_and_no_tensor_cores(self):
        told = text(PROMPTS.large(setting(language="cpp", environment=CPU), []))
        assert "Some CPU, 4 threads." in told
        assert "tf32x3" not in told
        assert "capability" not in told

    @pytest.mark.parametrize("target", TARGETS)
    def test_a_target_is_described_instead_of_the_machine(self, target):
        facts = {
            "roofline": None,
            "baselines_us": {},
            "estimate": {"time_us": 25.0, "bound_by": "overhead", "target": target},
        }
        told = text(PROMPTS.large(setting(environment=CPU, target=target, facts=facts), []))
        assert TARGETS[target].gpu in told
        assert "Some CPU" not in told
        assert "The reference is estimated at 25.0 µs, bound by overhead" in told

    @pytest.mark.parametrize(
        ("changes", "there"),
        [
            ({}, True),
            ({"precision": "tf32"}, False),
            ({"facts": {"roofline": None}}, True),
            ({"environment": {**H200, "compute_capability": "7.5"}}, False),
        ],
    )
    def test_emulated_fp32_is_told_where_it_helps(self, changes, there):
        assert ("cuBLAS in strict fp32 2.69 ms" in text(PROMPTS.large(setting(**changes), []))) is (
            there
        )

    def test_fp16_is_told_where_its_products_are_exact_enough(self):
        for precision, there in (("fp32", True), ("tf32", True), ("half", False)):
            told = text(PROMPTS.large(setting(precision=precision), []))
            assert ("its largest element is near 2^12" in told) is there

    def test_emulated_fp32_is_not_told_without_products(self):
        roofline = {**setting().facts["roofline"], "flops": 0}
        told = text(PROMPTS.large(setting(facts={"roofline": roofline}), []))
        assert "2.69 ms" not in told
        assert "FLOP:" not in told

    def test_labels_that_matter_for_kernels_are_told_and_those_that_invite_cheats_are_not(self):
        labels = {
            "overhead-bound": "launching cost 300 of eager's 577 µs",
            "constant": "zeros would pass as its output",
            "input-insensitive": "another input's output would pass",
        }
        told = text(PROMPTS.large(setting(facts={"labels": labels}), []))
        assert "launching cost 300 of eager's 577 µs" in told
        assert "would pass" not in told


class TestLarge:
    def test_every_kernel_is_shown_whole_with_its_result(self):
        told = text(PROMPTS.large(setting(), POOL))
        for kernel in POOL:
            assert told.count(kernel.candidate.source.rstrip()) == 1
            assert f"Step {kernel.id}: idea {kernel.id}" in told
        assert told.count(render(POOL[0].evaluation)) == 2

    def test_the_example_makes_room_for_kernels_that_somebody_wrote(self):
        def has_example(pool):
            return "example" in PROMPTS.large(setting(), pool).costs

        assert has_example([])
        assert has_example([node(1, origin="compiler")])
        assert not has_example(POOL)

    def test_the_compilers_kernel_is_told_unless_it_is_in_the_pool(self):
        for pool, count in (([], 1), ([node(1, source="made = 1\n")], 1)):
            told = text(PROMPTS.large(setting(compiler_source="made = 1\n"), pool))
            assert told.count("made = 1") == count
        assert "compiler" not in PROMPTS.large(setting(), []).costs

    def test_what_is_left_out_is_told(self):
        assert "3 more are left out" in text(PROMPTS.large(setting(), POOL, left_out=3))
        assert "left out" not in text(PROMPTS.large(setting(), POOL))

    def test_a_source_with_fences_does_not_end_its_own(self):
        source = 'TEXT = """\n```\n````\n"""\n'
        told = text(PROMPTS.large(setting(), [node(1, source=source)]))
        assert f"`````python\n{source.rstrip()}\n`````" in told

    def test_the_first_prompt_is_of_bounded_size(self):
        for language in LANGUAGES:
            assert sum(PROMPTS.large(setting(language=language), []).costs.values()) < 3600

    def test_what_is_to_be_beaten_is_there(self):
        for asked in (
            PROMPTS.large,
            lambda s, pool: PROMPTS.large_with_strategy(s, pool, "fusion", "Fuse."),
        ):
            assert "faster than the reference" in text(asked(setting(), []))
            assert "faster than all of the above" in text(asked(setting(), POOL))


class TestLanguage:
    def test_descriptors_are_told_where_gpu_and_triton_have_them(self):
        def told(capability, triton):
            known = {**H200, "compute_capability": capability, "triton": triton}
            return "TensorDescriptor" in text(PROMPTS.large(setting(environment=known), []))

        assert told("9.0", "3.6.0")
        assert not told("8.0", "3.6.0")
        assert not told("9.0", "3.2.0")


class TestStrategy:
    @pytest.mark.parametrize("language", LANGUAGES)
    def test_the_catalogue_is_that_of_the_language(self, language):
        told = text(PROMPTS.strategy(setting(language=language), POOL))
        offered = {s.name for s in CATALOGUE if f"- {s.name}: when" in told}
        assert offered == {s.name for s in strategies_for(language, generation=9)}

    def test_what_a_gpu_of_this_generation_cannot_do_is_not_offered(self):
        blackwell = setting(environment={**H200, "compute_capability": "10.0"})
        assert "- warp specialisation: when" in text(PROMPTS.strategy(blackwell, POOL))
        assert "- warp specialisation: when" not in text(PROMPTS.strategy(setting(), POOL))

    def test_a_strategy_says_nothing_of_other_languages(self):
        told = {
            language: text(PROMPTS.strategy(setting(language=language), []))
            for language in ("triton", "cuda")
        }
        assert "`num_stages` 3 to 5" in told["triton"]
        assert "`cp.async`" not in told["triton"]
        assert "`cp.async`" in told["cuda"]
        assert "`num_stages` 3 to 5" not in told["cuda"]

    def test_results_without_sources_are_enough_to_choose(self):
        told = text(PROMPTS.strategy(setting(), POOL))
        assert render(POOL[0].evaluation) in told
        assert "class ModelNew" not in told

    def test_the_choice_and_the_plan_are_to_be_followed(self):
        told = text(PROMPTS.large_with_strategy(setting(), POOL, "fusion", "Fuse the relu."))
        assert next(s for s in CATALOGUE if s.name == "fusion").how in told
        assert "Fuse the relu." in told
        assert module(1).rstrip() in told

    def test_a_plan_outside_of_the_catalogue_stands_alone(self):
        told = text(PROMPTS.large_with_strategy(setting(), [], "", "Do it by magic."))
        assert "# The plan to follow\nDo it by magic." in told


def test_a_contrast_shows_the_faster_first():
    told = text(PROMPTS.contrastive(setting(), node(7), node(8)))
    assert told.index(module(7).rstrip()) < told.index(module(8).rstrip())


def test_a_contrast_of_estimates_says_so():
    fast = replace(ESTIMATED, timing=Estimate(9.0, "memory", "sm_90"))
    asked = setting(environment=CPU, target="sm_90")
    told = text(PROMPTS.contrastive(asked, node(7, fast), node(8, ESTIMATED)))
    assert "The faster one, by estimate" in told


class TestReviser:
    def test_the_last_kernel_is_whole_and_the_others_a_line(self):
        told = text(PROMPTS.reviser(setting(), [node(1), node(2, FAILED), node(3)]))
        assert told.count(module(3).rstrip()) == 1
        assert "made in step 1" not in told
        assert f"- step 2 (idea 2): {verdict(FAILED)}" in told

    def test_a_wrong_kernel_is_to_be_made_right(self):
        assert "make it right" in text(PROMPTS.reviser(setting(), [node(1), node(2, FAILED)]))
        assert "save the most time" in text(PROMPTS.reviser(setting(), [node(2, FAILED), node(3)]))


class TestTuner:
    def test_the_current_kernel_is_whole_and_the_way_to_it_told_as_changes(self):
        told = text(PROMPTS.tuner(setting(), [node(1), node(2), node(3)]))
        assert told.count(module(3).rstrip()) == 1
        assert "-    x = x * 1  # made in step 1\n+    x = x * 2  # made in step 2" in told
        assert told.index("made in step 1") < told.index(module(3).rstrip())

    def test_guidance_and_what_is_left_out_are_told(self):
        told = text(PROMPTS.tuner(setting(), [node(3)], "1. Larger tiles.", left_out=1))
        assert "# Changes to make\n1. Larger tiles." in told
        assert "1 older one is left out" in told
        assert "Changes to make" not in text(PROMPTS.tuner(setting(), [node(3)]))

    def test_the_format_that_it_asks_for_is_the_one_that_is_read(self):
        task = PROMPTS.tuner(setting(), [node(3)]).sections[-1].text
        assert len(parse_patches(task)) == 1


class TestRepair:
    def test_the_failure_and_the_kernel_come_without_what_makes_it_fast(self):
        prompt = PROMPTS.repair(setting(), node(3, FAILED))
        assert render(FAILED) in text(prompt)
        assert module(3).rstrip() in text(prompt)
        assert "hardware" not in prompt.costs

    def test_either_form_of_an_answer_begins_a_line(self):
        told = text(PROMPTS.repair(setting(), node(3, FAILED)))
        assert "or none.\nWhere most of the module" in told

    def test_a_log_is_told_only_where_no_line_is_known(self):
        nowhere = Failed("runtime_error", "died", "x" * 5000 + "the end of the log")
        told = text(PROMPTS.repair(setting(), node(3, nowhere)))
        assert "the end of the log" in told
        assert "x" * 2001 not in told
        assert "the whole log" not in text(PROMPTS.repair(setting(), node(3, FAILED)))

    def test_a_mismatch_is_told(self):
        found = Mismatch("output", "own-0", 0.5, (0, 1), 1.0, 2.0, 0, "the right values times 1/2")
        wrong = Failed("wrong_output", "off by half", "a log", 0.5, feedback=found)
        told = text(PROMPTS.repair(setting(), node(3, wrong)))
        assert "pattern: the right values times 1/2" in told
        assert "a log" not in told


def test_a_reply_that_cannot_be_used_is_answered_with_the_reason():
    told = PROMPTS.again("Patch 2 matches nowhere.\n")
    assert told.startswith("Your reply cannot be used: Patch 2 matches nowhere.\n")
    assert "cut off" in PROMPTS.cut_off()


class TestTemplates:
    def test_every_file_has_a_name_here(self):
        assert {file.name for file in OWN.iterdir()} == set(TEMPLATES)

    def test_every_variable_is_described_and_used(self):
        texts = {name: (OWN / name).read_text() for name in TEMPLATES}
        for name in SHARED:
            assert any(re.search(rf"\b{name}\b", body) for body in texts.values()), name
        for template, own in TEMPLATES.items():
            assert all(re.search(rf"\b{name}\b", texts[template]) for name in own), template
        assert all([*SHARED.values(), *(d for own in TEMPLATES.values() for d in own.values())])

    def test_the_digest_follows_the_text(self, tmp_path):
        assert Prompts().digest == PROMPTS.digest
        (tmp_path / "again.j2").write_text("No: {{ reason }}")
        mine = Prompts(read_prompts(tmp_path))
        assert mine.digest != PROMPTS.digest
        assert mine.again("why") == "No: why"
        assert mine.cut_off() == PROMPTS.cut_off()

    def test_a_section_can_be_replaced(self, tmp_path):
        (tmp_path / "system.j2").write_text("Kernels in {{ language }} for {{ hardware.name }}.")
        prompt = Prompts(read_prompts(tmp_path)).large(setting(), POOL)
        assert prompt.messages[0].text == "Kernels in triton for NVIDIA H200."
        assert prompt.sections[1:] == PROMPTS.large(setting(), POOL).sections[1:]

    def test_an_emptied_section_is_left_out(self, tmp_path):
        (tmp_path / "hardware.j2").write_text("")
        assert "hardware" not in Prompts(read_prompts(tmp_path)).large(setting(), POOL).costs
