"""What the benchmarks of kernels compare, in words, and how they stop."""

from collections.abc import Sequence

from scripts.measure.design import Design
from scripts.measure.texts import LANGUAGES, design_words

PROVIDERS = {
    "en": {
        "ours": "this site's kernels",
        "ours_again": "the same under a second name, which gives the noise floor",
        "torch": "torch's own operator",
        "torch_unfused": "a chain of torch's operations",
        "compile": "the chain under torch.compile",
        "liger": "Liger",
    },
    "zh": {
        "ours": "本站的算子",
        "ours_again": "同一个算子换个名字再测一遍，用来得到噪声底",
        "torch": "torch 自带的算子",
        "torch_unfused": "用 torch 的一串操作写成",
        "compile": "那串操作交给 torch.compile",
        "liger": "Liger",
    },
}
STOPPING = {
    "en": (
        "The number of replays is fixed beforehand and the same for all; results that "
        "fail the comparison with float64 get no time. Differences within the noise "
        "floor are not resolved."
    ),
    "zh": (
        "重放次数事先定好，各家相同；与 float64 对不上的不计时。没有超过噪声底的差别，"
        "不作区分。"
    ),
}


def design(file: str, providers: Sequence[str]) -> Design:
    """The design of the benchmark in this file: providers in turn on the same tensors.

    Its own words are the question and what would refute it.
    """
    said = design_words(file)["words"]
    return Design(
        says=("none",),
        arms=tuple(providers),
        words={
            language: {
                **said[language],
                "arms": PROVIDERS[language],
                "stopping": STOPPING[language],
            }
            for language in LANGUAGES
        },
    )
