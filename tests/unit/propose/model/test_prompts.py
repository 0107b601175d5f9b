import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from asked import (
    CPU,
    ESTIMATED,
    FACTS,
    FAILED,
    H200,
    PASSED,
    REFERENCE,
    briefing,
    module,
    node,
    text,
)

from adaexplore.core.errors import BadInputError
from adaexplore.core.problem import LANGUAGES, Checks, Workload
from adaexplore.core.text.feedback import render, verdict
from adaexplore.core.text.units import estimated_tokens
from adaexplore.core.verdict.evaluation import (
    Autotuning,
    Estimate,
    Failed,
    KernelUse,
    Mismatch,
    Profile,
    TriedConfiguration,
)
from adaexplore.evaluate.kernels.targets import TARGETS
from adaexplore.languages import notes_of
from adaexplore.propose.model.patches import parse_patches
from adaexplore.propose.model.plans import PlanItem
from adaexplore.propose.model.prompts import OWN, Prompts, Turn, read_prompts
from adaexplore.propose.model.strategies import CATALOGUE, strategies_for
from adaexplore.propose.model.variables import EXAMPLES, SHARED, TEMPLATES, notes_name

PROMPTS = Prompts()
POOL = [node(1), node(2, origin="compiler")]
ITEMS = [
    PlanItem(1, "fusion: the relu.", "done", [node(2)]),
    PlanItem(2, "tiling: 64 by 64.", "skipped", [node(5, FAILED), node(6)]),
    PlanItem(3, "pipelining: the loads.", "now", [node(7, FAILED)]),
    PlanItem(4, "layout: channels last.", "later"),
]


def chosen(asked, pool, reply="fusion: fuse the relu."):
    """The turn before a module by a strategy."""
    return Turn(PROMPTS.strategy(asked, pool), reply)


def planned(asked):
    """The turn before the first version of a plan."""
    return Turn(PROMPTS.plan(asked, POOL, 4), "1. Fuse the relu.")


def revised(asked, *window):
    """The turn before a tuner's patches."""
    return Turn(PROMPTS.reviser(asked, window), "1. Larger tiles.")


def item(asked, window):
    """The request to carry out the next item of a plan."""
    return PROMPTS.item(asked, window, ITEMS)


FORMS = {
    "large": lambda s: PROMPTS.large(s, POOL),
    "large, first": lambda s: PROMPTS.large(s, []),
    "strategy": lambda s: PROMPTS.strategy(s, POOL),
    "with strategy": lambda s: PROMPTS.large_with_strategy(s, POOL, chosen(s, POOL)),
    "plan": lambda s: PROMPTS.plan(s, POOL, 4),
    "first version": lambda s: PROMPTS.first_version(s, POOL, planned(s)),
    "item": lambda s: PROMPTS.item(s, [*POOL, node(3)], ITEMS),
    "contrastive": lambda s: PROMPTS.contrastive(replace(s, contrast=POOL)),
    "reviser, contrasting": lambda s: PROMPTS.reviser(replace(s, contrast=POOL), [node(3)]),
    "reviser": lambda s: PROMPTS.reviser(s, [*POOL, node(3)]),
    "tuner": lambda s: PROMPTS.tuner(s, [*POOL, node(3)]),
    "tuner, revised": lambda s: PROMPTS.tuner(s, [node(3)], revised(s, node(3))),
    "repair": lambda s: PROMPTS.repair(s, node(3, FAILED)),
}
WRITING = [
    form for form in FORMS if form not in ("strategy", "reviser", "reviser, contrasting", "plan")
]


@pytest.fixture(params=FORMS)
def form(request):
    return FORMS[request.param]


class TestWiderBounds:
    def told(self, **others):
        bounds = {"own-0": 2e-6, "own-1": 2e-6, "large": 10 * 2e-6, **others}
        asked = briefing(facts={"bounds": bounds})
        lines = text(PROMPTS.large(asked, [])).splitlines()
        return [line for line in lines if "unlike the problem's own" in line]

    def test_input_sets_of_a_much_wider_bound_are_told_with_it(self):
        [line] = self.told(normal=1e-4, held=0.1, small=1.0001e-4)
        assert line.endswith(" more is allowed: 1.0e-4 (normal, small); 1.0e-1 (held).")
        assert estimated_tokens(line) < 40

    def test_others_are_not(self):
        assert self.told() == self.told(normal=2e-6) == []


class TestEveryPrompt:
    def test_contains_the_exact_reference_once(self, form):
        assert text(form(briefing())).count(REFERENCE.rstrip()) == 1

    def test_is_a_system_and_a_user_message_with_a_reply_between_turns(self, form):
        first, *roles = [m.role for m in form(briefing()).messages]
        assert first == "system"
        assert roles in (["user"], ["user", "assistant", "user"])

    def test_contains_the_users_demand_once(self, form):
        assert text(form(briefing(demand="use atomics."))).count("use atomics.") == 1
        assert "must also do this" not in text(form(briefing()))

    def test_consists_of_its_sections(self, form):
        prompt = form(briefing(rules=["Never do that."]))
        first, *others = prompt.sections
        assert prompt.messages[0].text == first.text
        told = "\n\n".join(message.text for message in prompt.messages[1:])
        assert told == "\n\n".join(section.text for section in others)
        assert set(prompt.costs) == {section.name for section in prompt.sections}
        total = sum(estimated_tokens(message.text) for message in prompt.messages)
        assert sum(prompt.costs.values()) == pytest.approx(total, abs=2 * len(prompt.sections))

    def test_constant_sections_come_first(self, form):
        several = [form(briefing()), PROMPTS.large(briefing(), [])]
        begins = [[section.text for section in prompt.sections[:2]] for prompt in several]
        assert begins[0] == begins[1]

    @pytest.mark.parametrize("language", LANGUAGES)
    @pytest.mark.parametrize("precision", ["fp32", "tf32", "half"])
    def test_renders_without_facts(self, form, language, precision):
        unknown = {
            "roofline": None,
            "products": None,
            "errors": {},
            "baselines_us": {},
            "outputs": [],
        }
        for environment in ({"device": "cuda:0"}, {"device": "cpu"}):
            asked = form(
                briefing(
                    language=language, precision=precision, environment=environment, facts=unknown
                )
            )
            facts = [s.text for s in asked.sections if s.name in ("problem", "hardware")]
            assert not re.search(r"\b(None|0 (MiB|GiB|threads))\b", "".join(facts))

    def test_has_no_stray_blank_lines(self, form):
        told = text(form(briefing(rules=["Never do that."])))
        assert "\n\n\n\n" not in told
        assert told == told.strip()

    @pytest.mark.parametrize("writing", WRITING)
    def test_writing_forms_have_rules_and_language_notes(self, writing):
        told = text(FORMS[writing](briefing(rules=["Never use a hammer."])))
        assert "- Never use a hammer." in told
        assert "# Triton 3.6.0" in told

    def test_refuses_a_language_without_notes(self, form):
        with pytest.raises(
            BadInputError, match="'cobol'; known: triton, gluon, cuda, helion, cutedsl, cpp"
        ):
            form(briefing(language="cobol"))


class TestSystem:
    def test_is_short(self):
        for language in LANGUAGES:
            assert PROMPTS.large(briefing(language=language), []).costs["system"] < 700

    def test_custom_kernels_are_required_if_the_problem_says_so(self):
        free, strict = (
            PROMPTS.large(briefing(checks=Checks(require_custom=r)), []).messages[0].text
            for r in (False, True)
        )
        assert "may do what they do best" in free
        assert "may do what they do best" not in strict
        assert "Its own kernels must do the work" in strict

    def test_tells_what_users_do_with_a_module(self):
        told = PROMPTS.large(briefing(), []).messages[0].text
        assert "`persistent=False`" in told
        assert "when `data_ptr()` or `_version` of a weight changes" in told
        assert "where a gradient is asked for and not computed" in told

    def test_tells_how_a_training_step_is_judged(self):
        trains = briefing(checks=Checks(backward=True))
        told, plain = (PROMPTS.large(b, []).messages[0].text for b in (trains, briefing()))
        for words in ("A call is a training step", "torch.autograd.Function", "keep their names"):
            assert words in told
            assert words not in plain
        assert "may fold, cast or repack weights" not in told

    def test_a_module_of_a_model_keeps_no_weights_and_can_be_captured_on_a_gpu(self, form):
        told = text(form(briefing(weights="weights.pt")))
        assert "keeps nothing that it computed from weights" in told
        assert "every call can be captured" in told
        assert "may fold, cast or repack weights" not in told
        there = text(form(briefing(weights="weights.pt", environment=CPU, language="cpp")))
        for said in (text(form(briefing())), there):
            assert "every call can be captured" not in said
            assert "may fold, cast or repack weights" in said

    def test_omits_gpu_facts_on_a_cpu(self):
        told = PROMPTS.large(briefing(language="cpp", environment=CPU), []).messages[0].text
        assert "stream" not in told
        assert "L2" not in told

    def test_explains_estimates_and_other_sizes_for_a_target(self):
        def told(**changes):
            return PROMPTS.repair(briefing(**changes), node(3, FAILED)).messages[0].text

        without, with_gpu = told(environment=CPU, target="sm_90"), told()
        assert "an estimate, because no such GPU is available" in without
        assert "mask every edge" in without
        assert "interleaved" not in without
        assert "interleaved" in with_gpu
        assert "mask every edge" not in with_gpu


class TestPrecision:
    @pytest.mark.parametrize(
        ("precision", "floor", "factor"),
        [("fp32", "2e-6", "4 times"), ("tf32", "9.8e-4", "twice"), ("half", "3.9e-3", "twice")],
    )
    def test_figures_are_the_evaluators(self, precision, floor, factor):
        told = text(PROMPTS.large(briefing(precision=precision), []))
        assert floor in told
        assert f"Allowed is {factor} PyTorch's own error" in told

    def test_the_class_holds_where_a_text_asks_to_quantise(self):
        said = "The bound above holds whatever the text says: quantise only where"
        labels = (("float-work", "its reference computes in floating point"),)
        assert said in text(PROMPTS.large(briefing(labels=labels), []))
        assert said not in text(PROMPTS.large(briefing(), []))

    @pytest.mark.parametrize("precision", ["fp32", "tf32", "half"])
    def test_allows_the_rounding_of_16_bit_outputs(self, precision):
        outputs = [{"path": "output", "shape": [64], "dtype": "bfloat16"}]
        facts, both = {"outputs": outputs}, {"outputs": [*outputs, *FACTS["outputs"]]}
        told = text(PROMPTS.large(briefing(precision=precision, facts=facts), []))
        assert "3.9e-3" in told
        assert "is a wrong result" not in told
        assert "has 16 bits" not in text(
            PROMPTS.large(briefing(precision=precision, facts=both), [])
        )

    def test_states_the_estimated_launch_cost(self):
        told = text(PROMPTS.large(briefing(environment=CPU, target="sm_90"), []))
        assert "costs 5 µs" in told

    def test_states_pytorchs_own_error(self):
        assert "PyTorch in strict fp32 has error 1.6e-6 here" in text(PROMPTS.large(briefing(), []))


class TestWorkloads:
    def test_a_single_workload_is_described_by_its_outputs(self):
        told = text(PROMPTS.large(briefing(), []))
        assert "output: float32 [64, 96]" in told
        assert "of `get_inputs()`" in told
        assert "Workloads" not in told

    def test_captured_inputs_are_described(self):
        x = {"path": "x", "shape": [3, 2], "dtype": "bfloat16", "strides": [1, 3]}
        scale = {"path": "scale", "shape": None, "dtype": "float", "strides": []}
        inputs = [x | {"values": "rms 1, at most 4"}, scale | {"values": "0.5"}]
        described = text(PROMPTS.large(briefing(facts={"inputs": inputs}), []))
        assert (
            "\nThe file holds:\n"
            "- x: bfloat16 [3, 2], strides [1, 3], rms 1, at most 4\n"
            "- scale: float, 0.5\n\n"
            "output: float32 [64, 96]"
        ) in described
        assert "The file holds" not in text(PROMPTS.large(briefing(), []))

    def test_several_workloads_are_listed_with_their_times(self):
        outputs = FACTS["outputs"]
        facts = [
            {"name": "short", "input_sets": [], "outputs": outputs, "roofline": None}
            | {"baselines_us": {"eager": 9.0, "compile": 8.0}},
            {"name": "edge", "input_sets": [], "outputs": outputs, "roofline": None}
            | {"baselines_us": {}},
        ]
        workloads = (Workload("short"), Workload("edge", timed=False))
        told = text(PROMPTS.large(briefing(workloads=workloads, facts={"workloads": facts}), []))
        assert "- short: output float32 [64, 96], eager 9.00 µs, torch.compile 8.00 µs\n" in told
        assert "- edge: output float32 [64, 96], not timed\n" in told
        assert "shapes and dtypes of every workload" in told


class TestHardware:
    def test_states_measured_and_data_sheet_figures(self):
        told = text(PROMPTS.large(briefing(), []))
        assert "NVIDIA H200, compute capability 9.0, 132 multiprocessors, 227 KiB" in told
        assert "Data sheet: 4.80 TB/s" in told
        assert "copies at 4.00 TB/s" in told
        assert "51.0 TFLOP/s (fp32), 380 TFLOP/s (tf32)" in told
        assert "the roofline is 100 µs, bound by memory" in told
        assert (
            "eager 577 µs (5.77× the roofline), torch.compile 571 µs (5.71× the roofline)" in told
        )

    def test_states_the_librarys_time_for_the_products(self):
        line = "PyTorch's library alone takes 40.0 µs in fp16, 75.0 µs in TF32 for "
        told = text(PROMPTS.large(briefing(), []))
        assert (
            f"{line}2 products and convolutions, each by itself, with 99 % of these FLOP.\n" in told
        )
        single = {**FACTS["products"], "timed": 1, "library_us": {"half": 40.0}}
        told = text(PROMPTS.large(briefing(facts={"products": single}), []))
        assert "takes 40.0 µs in fp16 for the product or convolution with 99 %" in told
        untimed = {**FACTS["products"], "timed": 0, "library_us": {}}
        for products in (None, untimed):
            told = text(PROMPTS.large(briefing(facts={"products": products}), []))
            assert "library alone" not in told

    @pytest.mark.parametrize(
        ("changes", "there"),
        [
            ({"depth": 512}, True),
            ({"depth": 512, "step_us": 0.0}, False),  # not measured
            ({"depth": 60}, False),  # the roofline of 100 µs is higher
            ({"depth": 7, "step_us": 50.0}, False),  # a short chain
        ],
    )
    def test_states_how_many_products_follow_each_other_where_that_bounds(self, changes, there):
        facts = {"products": FACTS["products"] | changes}
        told = text(PROMPTS.large(briefing(facts=facts), []))
        assert ("of its products follow each other" in told) == there
        assert ("for each, 1.50 µs, about 768 µs." in told) == there

    def test_gpu_without_data_sheet_has_measured_figures(self):
        other = {**H200, "gpu": "NVIDIA Something", "compute_capability": "11.3"}
        told = text(PROMPTS.large(briefing(environment=other), []))
        assert "NVIDIA Something, compute capability 11.3" in told
        assert "copies at 4.00 TB/s" in told
        assert "Data sheet" not in told

    def test_cpu_has_threads_and_no_tensor_cores(self):
        told = text(PROMPTS.large(briefing(language="cpp", environment=CPU), []))
        assert "Some CPU, 4 threads." in told
        assert "tf32x3" not in told
        assert "capability" not in told

    @pytest.mark.parametrize("target", TARGETS)
    def test_describes_the_target_instead_of_the_machine(self, target):
        facts = {
            "roofline": None,
            "baselines_us": {},
            "estimate": {"time_us": 25.0, "bound_by": "overhead", "target": target},
        }
        told = text(PROMPTS.large(briefing(environment=CPU, target=target, facts=facts), []))
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
    def test_recommends_emulated_fp32_where_it_helps(self, changes, there):
        assert (
            "cuBLAS in strict fp32 2.69 ms" in text(PROMPTS.large(briefing(**changes), []))
        ) is (there)

    def test_recommends_fp16_products_where_precise_enough(self):
        for precision, there in (("fp32", True), ("tf32", True), ("half", False)):
            told = text(PROMPTS.large(briefing(precision=precision), []))
            assert ("its largest element is near 2^12" in told) is there

    def test_omits_emulated_fp32_without_products(self):
        roofline = {**FACTS["roofline"], "flops": 0}
        told = text(PROMPTS.large(briefing(facts={"roofline": roofline}), []))
        assert "2.69 ms" not in told
        assert "FLOP:" not in told

    def test_shows_useful_labels_but_none_that_invite_cheats(self):
        labels = {
            "overhead-bound": "launching cost 300 of eager's 577 µs",
            "constant": "zeros would pass as its output",
            "input-insensitive": "another input's output would pass",
        }
        told = text(PROMPTS.large(briefing(facts={"labels": labels}), []))
        assert "launching cost 300 of eager's 577 µs" in told
        assert "would pass" not in told


class TestLarge:
    def test_shows_every_kernel_whole_with_its_result(self):
        told = text(PROMPTS.large(briefing(), POOL))
        for kernel in POOL:
            assert told.count(kernel.candidate.source.rstrip()) == 1
            assert f"Step {kernel.id}: idea {kernel.id}" in told
        assert told.count(render(POOL[0].evaluation)) == 2

    def test_kernels_by_a_model_replace_the_example(self):
        def has_example(pool):
            return "example" in PROMPTS.large(briefing(), pool).costs

        assert has_example([])
        assert has_example([node(1, origin="compiler")])
        assert not has_example(POOL)

    def test_states_the_number_of_omitted_kernels(self):
        assert "3 more are omitted" in text(PROMPTS.large(briefing(), POOL, left_out=3))
        assert "omitted" not in text(PROMPTS.large(briefing(), POOL))

    def test_a_source_may_contain_fences(self):
        source = 'TEXT = """\n```\n````\n"""\n'
        told = text(PROMPTS.large(briefing(), [node(1, source=source)]))
        assert f"`````python\n{source.rstrip()}\n`````" in told

    def test_first_prompt_has_bounded_size(self):
        for language in LANGUAGES:
            most = 4500 if language == "gluon" else 3600  # models know little of it
            assert sum(PROMPTS.large(briefing(language=language), []).costs.values()) < most

    def test_the_example_is_of_the_kind_of_the_problem(self):
        convolution = replace(briefing().problem, source="nn.Conv2d(3, 64, 3)")
        told = text(PROMPTS.large(replace(briefing(), problem=convolution), []))
        assert "conv_relu_kernel" in told
        assert "layer_norm_kernel" not in told
        assert "layer_norm_kernel" in text(PROMPTS.large(briefing(), []))
        network = replace(briefing(facts={"layers": 20}), problem=convolution)
        assert "torch.cuda.CUDAGraph()" in text(PROMPTS.large(network, []))

    def test_names_the_kernels_to_beat_only_if_shown(self):
        for asked in (
            PROMPTS.large,
            lambda s, pool: PROMPTS.large_with_strategy(s, pool, chosen(s, pool)),
        ):
            assert "faster than the reference" in text(asked(briefing(), []))
            assert "faster than all of the above" in text(asked(briefing(), POOL))


class TestLanguage:
    def test_describes_descriptors_where_gpu_and_triton_have_them(self):
        def told(capability, triton):
            known = {**H200, "compute_capability": capability, "triton": triton}
            return "TensorDescriptor" in text(PROMPTS.large(briefing(environment=known), []))

        assert told("9.0", "3.6.0")
        assert not told("8.0", "3.6.0")
        assert not told("9.0", "3.2.0")


class TestStrategy:
    @pytest.mark.parametrize("language", LANGUAGES)
    def test_offers_the_strategies_of_the_language(self, language):
        told = text(PROMPTS.strategy(briefing(language=language), POOL))
        offered = {s.name for s in CATALOGUE if f"- {s.name}: when" in told}
        assert offered == {s.name for s in strategies_for(language, generation=9)}

    def test_omits_strategies_of_newer_gpus(self):
        blackwell = briefing(environment={**H200, "compute_capability": "10.0"})
        assert "- warp specialisation: when" in text(PROMPTS.strategy(blackwell, POOL))
        assert "- warp specialisation: when" not in text(PROMPTS.strategy(briefing(), POOL))

    def test_omits_details_of_other_languages(self):
        told = {
            language: text(PROMPTS.strategy(briefing(language=language), []))
            for language in ("triton", "cuda")
        }
        assert "`num_stages` 3 to 5" in told["triton"]
        assert "`cp.async`" not in told["triton"]
        assert "`cp.async`" in told["cuda"]
        assert "`num_stages` 3 to 5" not in told["cuda"]

    def test_choice_shows_results_without_sources(self):
        told = text(PROMPTS.strategy(briefing(), POOL))
        assert render(POOL[0].evaluation) in told
        assert "class ModelNew" not in told

    def test_the_next_turn_continues_the_choice_and_repeats_nothing_of_it(self):
        before = chosen(briefing(), POOL)
        asked = PROMPTS.large_with_strategy(briefing(), POOL, before)
        *so_far, reply, told = asked.messages
        assert (tuple(so_far), reply.text) == (before.prompt.messages, before.reply)
        assert module(1).rstrip() in told.text
        once = {"system", "problem", "hardware", "strategies"}
        assert Counter(section.name for section in asked.sections if section.name in once) == (
            dict.fromkeys(once, 1)
        )


class TestContrast:
    def test_shows_every_kernel_whole_with_its_result(self):
        kernels = [node(7), node(9), node(8)]
        told = text(PROMPTS.contrastive(replace(briefing(), contrast=kernels)))
        places = [told.index(module(kernel.id).rstrip()) for kernel in kernels]
        assert places == sorted(places)
        assert told.count(render(kernels[0].evaluation)) == 3

    def test_asks_for_the_comparison_before_the_code(self):
        asked = replace(briefing(), contrast=POOL)
        for prompt, then in (
            (PROMPTS.contrastive(asked), "write a `ModelNew` that is faster"),
            (PROMPTS.reviser(asked, [node(3)]), "Name the one to three changes"),
        ):
            task = prompt.sections[-1].text
            assert 0 < task.index("First compare the kernels") < task.index(then)
        assert "compare the kernels" not in text(PROMPTS.reviser(briefing(), [node(3)]))

    def test_marks_estimates(self):
        fast = replace(ESTIMATED, timing=Estimate(9.0, "memory", "sm_90"))
        asked = briefing(environment=CPU, target="sm_90")
        asked = replace(asked, contrast=[node(7, fast), node(8, ESTIMATED)])
        assert "the fastest first, by estimate" in text(PROMPTS.contrastive(asked))
        assert "estimate." not in text(PROMPTS.contrastive(replace(briefing(), contrast=POOL)))


class TestReviser:
    def test_shows_the_last_kernel_whole_and_the_others_in_a_line(self):
        told = text(PROMPTS.reviser(briefing(), [node(1), node(2, FAILED), node(3)]))
        assert told.count(module(3).rstrip()) == 1
        assert "made in step 1" not in told
        assert f"- step 2 (idea 2): {verdict(FAILED)}" in told

    def test_asks_for_correctness_of_a_wrong_kernel(self):
        assert "make it correct" in text(PROMPTS.reviser(briefing(), [node(1), node(2, FAILED)]))
        assert "save the most time" in text(PROMPTS.reviser(briefing(), [node(2, FAILED), node(3)]))


class TestSlowestKernel:
    @pytest.fixture
    def profiled(self):
        profile = Profile((KernelUse("matmul", "custom", 1.0, 200.0),), 200.0, 1.0)
        return [node(1, replace(PASSED, profile=profile))]

    def test_small_steps_are_told_of_it_once(self, profiled):
        line = "Slowest kernel: `matmul`, 100 % of the kernels' time"
        reviser = PROMPTS.reviser(briefing(), profiled)
        tuner = PROMPTS.tuner(briefing(), profiled, Turn(reviser, "Tile it."))
        alone = PROMPTS.tuner(briefing(), profiled)
        item = PROMPTS.item(briefing(), profiled, [PlanItem(1, "Tile it.", "now")])
        assert [text(each).count(line) for each in (reviser, tuner, alone, item)] == [1, 1, 1, 1]

    def test_it_is_part_of_a_result_which_feedback_may_leave_out(self, profiled):
        told = replace(briefing(), feedback="verdict")
        assert "Slowest kernel" not in text(PROMPTS.tuner(told, profiled))


class TestTuner:
    def test_shows_the_current_kernel_whole_and_earlier_ones_as_changes(self):
        told = text(PROMPTS.tuner(briefing(), [node(1), node(2), node(3)]))
        assert told.count(module(3).rstrip()) == 1
        assert "-    x = x * 1  # made in step 1\n+    x = x * 2  # made in step 2" in told
        assert told.index("made in step 1") < told.index(module(3).rstrip())

    @pytest.mark.parametrize("form", [PROMPTS.tuner, PROMPTS.reviser, item])
    def test_shows_what_the_current_kernels_autotuner_tried_and_no_other(self, form):
        tried = (TriedConfiguration(("64",), 96.0), TriedConfiguration(("128",), 99.0))
        search = Autotuning("matmul", "", ("BLOCK",), tried, 2)
        tuned = replace(PASSED, profile=Profile((), 300.0, 0.5, (search,)))
        line = "the autotuner of matmul tried (BLOCK): (64) 96.0 µs, (128) 99.0 µs"
        shown = briefing()
        assert text(form(shown, [node(1), node(2, tuned)])).count(line) == 1
        for prompt in (
            form(shown, [node(1, tuned), node(2)]),
            PROMPTS.large(shown, [node(1, tuned)]),
        ):
            assert line not in text(prompt)

    def test_after_a_reviser_it_continues_that_conversation_and_shows_no_kernel_again(self):
        before = revised(briefing(), node(1), node(3))
        asked = PROMPTS.tuner(briefing(), [node(1), node(3)], before)
        assert asked.messages[:-2] == before.prompt.messages
        assert asked.messages[-2].text == "1. Larger tiles."
        assert text(asked).count(module(3).rstrip()) == 1
        assert "by these changes" in asked.messages[-1].text

    def test_without_room_for_that_it_is_a_new_one_with_the_changes(self):
        told = text(PROMPTS.tuner(briefing(), [node(3)], revised(briefing(), node(3)), left_out=1))
        assert "# Changes to make\n1. Larger tiles." in told
        assert "1 older kernel is omitted" in told
        assert "Changes to make" not in text(PROMPTS.tuner(briefing(), [node(3)]))

    def test_requests_the_format_that_the_parser_reads(self):
        task = PROMPTS.tuner(briefing(), [node(3)]).sections[-1].text
        assert len(parse_patches(task)) == 1


class TestRepair:
    def test_shows_failure_and_kernel_without_hardware(self):
        prompt = PROMPTS.repair(briefing(), node(3, FAILED))
        assert render(FAILED) in text(prompt)
        assert module(3).rstrip() in text(prompt)
        assert "hardware" not in prompt.costs

    def test_both_forms_of_answer_begin_a_line(self):
        told = text(PROMPTS.repair(briefing(), node(3, FAILED)))
        assert "or none.\nIf most of the module" in told

    def test_shows_a_log_only_without_a_known_line(self):
        nowhere = Failed("runtime_error", "died", "x" * 5000 + "the end of the log")
        told = text(PROMPTS.repair(briefing(), node(3, nowhere)))
        assert "the end of the log" in told
        assert "x" * 2001 not in told
        assert "the whole log" not in text(PROMPTS.repair(briefing(), node(3, FAILED)))

    def test_shows_a_mismatch(self):
        found = Mismatch("output", "own-0", 0.5, (0, 1), 1.0, 2.0, 0, "the right values times 1/2")
        wrong = Failed("wrong_output", "off by half", "a log", 0.5, feedback=found)
        told = text(PROMPTS.repair(briefing(), node(3, wrong)))
        assert "pattern: the right values times 1/2" in told
        assert "a log" not in told


def test_answers_an_unusable_reply_with_the_reason():
    told = PROMPTS.again("Patch 2 matches nowhere.\n")
    assert told.startswith("Your reply cannot be used: Patch 2 matches nowhere.\n")
    assert "cut off" in PROMPTS.cut_off()


class TestTemplates:
    def test_every_template_file_is_listed(self):
        of_languages = {*map(notes_name, LANGUAGES), *EXAMPLES}
        assert {file.name for file in OWN.iterdir()} == set(TEMPLATES) - of_languages

    def test_the_documentation_lists_every_template(self):
        told = (Path(__file__).parents[4] / "docs/prompts.md").read_text()
        assert [file.name for file in OWN.iterdir() if f"`{file.name}`" not in told] == []

    def test_every_variable_is_described_and_used(self):
        texts = {file.name: file.read_text() for file in OWN.iterdir()}
        texts |= {notes_name(language): notes_of(language).read_text() for language in LANGUAGES}
        for name in SHARED:
            assert any(re.search(rf"\b{name}\b", body) for body in texts.values()), name
        for template, own in TEMPLATES.items():
            body = texts.get(template, "versions")  # an example may be for all versions
            assert all(re.search(rf"\b{name}\b", body) for name in own), template
        assert all([*SHARED.values(), *(d for own in TEMPLATES.values() for d in own.values())])

    def test_digest_changes_with_the_text(self, tmp_path):
        assert Prompts().digest == PROMPTS.digest
        (tmp_path / "again.j2").write_text("No: {{ reason }}")
        mine = Prompts(read_prompts(tmp_path))
        assert mine.digest != PROMPTS.digest
        assert mine.again("why") == "No: why"
        assert mine.cut_off() == PROMPTS.cut_off()

    def test_a_section_can_be_replaced(self, tmp_path):
        (tmp_path / "system.j2").write_text("Kernels in {{ language }} for {{ hardware.name }}.")
        prompt = Prompts(read_prompts(tmp_path)).large(briefing(), POOL)
        assert prompt.messages[0].text == "Kernels in triton for NVIDIA H200."
        assert prompt.sections[1:] == PROMPTS.large(briefing(), POOL).sections[1:]

    def test_an_empty_section_is_omitted(self, tmp_path):
        (tmp_path / "hardware.j2").write_text("")
        assert "hardware" not in Prompts(read_prompts(tmp_path)).large(briefing(), POOL).costs
