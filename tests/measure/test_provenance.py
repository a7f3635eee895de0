"""What a record says about its making, and what it never says."""

import getpass
import json
import platform
import subprocess
import types

import pytest

from scripts.measure import provenance, records, runner
from scripts.measure.records import RecordError


@pytest.mark.parametrize(
    ("name", "tidy"),
    [
        ("Intel(R) Xeon(R) Platinum 8480C CPU @ 2.00GHz", "Intel Xeon Platinum 8480C"),
        ("AMD EPYC 9654 96-Core Processor", "AMD EPYC 9654"),
        (" AMD EPYC\n", "AMD EPYC"),
        ("Apple M4", "Apple M4"),
        ("NVIDIA H200", "NVIDIA H200"),
        ("  ", "unknown device"),
    ],
)
def test_device_names_are_tidy(name, tidy):
    assert provenance.tidy(name) == tidy


def test_machine_names(monkeypatch):
    monkeypatch.delenv("MACHINE", raising=False)
    described = {"name": "Intel Xeon Platinum 8480C"}
    assert provenance.machine_name(described=described) == "intel-xeon-platinum-8480c"
    assert records.MACHINE.fullmatch(provenance.machine_name("cpu"))
    monkeypatch.setenv("MACHINE", "my-laptop")
    assert provenance.machine_name("cpu") == "my-laptop"
    monkeypatch.setenv("MACHINE", "../etc")
    with pytest.raises(RecordError, match=r"MACHINE=.\.\./etc"):
        provenance.machine_name("cpu")


def test_a_gpu_is_described_by_nvidia_smi(monkeypatch):
    torch = pytest.importorskip("torch", reason="torch says whether a GPU is usable")
    line = "NVIDIA H200, 570.124.06, 345, 1980, 143771, 700.00\n"
    made = types.SimpleNamespace(multi_processor_count=132, L2_cache_size=60 * 2**20)
    monkeypatch.setattr(provenance, "_output", lambda *_: line)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: made)
    assert provenance.device() == {
        "kind": "gpu",
        "name": "NVIDIA H200",
        "driver": "570.124.06",
        "cuda": torch.version.cuda or "unknown",
        "clock_mhz": 345,
        "clock_max_mhz": 1980,
        "memory_mib": 143771,
        "power_limit_watt": 700,
        "multiprocessors": 132,
        "l2_mib": 60,
    }
    monkeypatch.setattr(provenance, "_output", lambda *_: " \n")
    assert provenance.gpu() is None
    monkeypatch.setattr(provenance, "_output", lambda *_: line)
    assert provenance.device("cpu")["kind"] == "cpu"
    monkeypatch.delenv("MACHINE", raising=False)
    assert provenance.machine_name() == "nvidia-h200"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert provenance.gpu() is None
    monkeypatch.setattr(provenance, "_output", lambda *_: None)
    assert provenance.gpu() is None


@pytest.mark.parametrize(
    ("head", "changed", "commit"),
    [
        ("abc1234\n", "", "abc1234"),
        ("abc1234\n", " M README.md\n", "abc1234-dirty"),
        (None, None, "unknown"),
    ],
)
def test_commit(monkeypatch, head, changed, commit):
    monkeypatch.delenv("COMMIT", raising=False)
    said = {"HEAD": head, "--show-toplevel": f"{provenance.ROOT}\n"}
    monkeypatch.setattr(provenance, "_output", lambda *c: said.get(c[-1], changed))
    assert provenance.commit() == commit
    monkeypatch.setenv("COMMIT", "fedcba9")
    assert provenance.commit() == "fedcba9"


def test_a_command_that_fails_or_hangs_says_nothing(monkeypatch):
    assert provenance._output("false") is None
    assert provenance._output("no-such-command-here") is None

    def hangs(*_, **__):
        raise subprocess.TimeoutExpired("x", 1)

    monkeypatch.setattr(provenance.subprocess, "run", hangs)
    assert provenance._output("true") is None


def test_method_and_seeds_are_the_modules_or_found():
    rows = [{"seed": 3}, {"seed": 1}, {"seed": None}]
    plain = types.SimpleNamespace(__doc__="Two\n  words.")
    assert provenance._method(plain) == "Two words."
    assert provenance._seeds(plain, rows) == [1, 3]
    said = types.SimpleNamespace(__doc__="", METHOD="counted", SEEDS=range(2))
    assert provenance._method(said) == "counted"
    assert provenance._seeds(said, rows) == [0, 1]


def test_only_what_is_measured_has_a_version():
    assert provenance.versions({"itertools", "math"}) == {}
    assert list(provenance.versions({"torch", "math"})) == ["torch"]


def test_peers_have_the_version_of_what_was_installed(monkeypatch):
    def version(package):
        if package in ("numpy", "quack-kernels", "nvidia-cutlass-dsl"):
            raise provenance.importlib.metadata.PackageNotFoundError(package)
        return {"liger-kernel": "0.8.5", "triton": "3.6.0"}[package]

    monkeypatch.setattr(provenance.importlib.metadata, "version", version)
    found = provenance.versions({"liger_kernel", "numpy"})
    assert found == {"liger-kernel": "0.8.5"}
    assert provenance._runs([])["dsl"] == {
        "triton": "3.6.0",
        "nvidia-cutlass-dsl": None,
        "quack-kernels": None,
    }


def test_peers_of_the_benchmark_are_among_what_is_timed():
    for name in ("norm_bandwidth", "norm_backward", "qk_norm_bandwidth"):
        packages = provenance.digest.packages(name)
        assert {"torch", "triton", "liger_kernel"} <= packages


def test_a_record_names_no_host_user_or_path(folder):
    record = runner.trial("squares", folder=folder)
    text = json.dumps(record.provenance)
    assert records.problem(record) is None
    for secret in (platform.node(), getpass.getuser(), str(records.ROOT), str(folder)):
        assert secret not in text


def test_variables_are_told_unless_they_name_a_machine(monkeypatch):
    for name in provenance.environment():
        monkeypatch.delenv(name)
    assert provenance.environment() == {}
    told = {
        "TRITON_INTERPRET": "1",
        "PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:128,expandable_segments:True",
        "TORCHINDUCTOR_MAX_AUTOTUNE": "0",
        "OMP_NUM_THREADS": "16",
        "TORCH_COMPILE_DISABLE": "1",
        "TORCHDYNAMO_DISABLE": "1",
        "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": "1",
        "NVIDIA_TF32_OVERRIDE": "0",
        "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
    }
    hidden = {
        "TRITON_CACHE_DIR": "/home/somebody/.triton",
        "CUDA_HOME": "cuda/12",
        "CUDA_PATH": "cuda:/home/somebody/cuda",
        "CUDA_VISIBLE_DEVICES": "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6",
        "PYTORCH_KERNEL_CACHE_PATH": "~",
    }
    others = {"PATH": "/bin", "MACHINE": "a-gpu", "MY_TRITON_KEY": "1", "HOME": "x"}
    for name, value in (told | hidden | others).items():
        monkeypatch.setenv(name, value)
    assert provenance.environment() == told | dict.fromkeys(hidden)


def test_a_record_of_a_gpu_names_its_processes_and_their_variables(folder, monkeypatch):
    module = types.SimpleNamespace(__doc__="x")

    def made(*rows):
        return provenance.provenance("squares", module, list(rows), folder=folder)

    assert not {"runs", "environment"} & made({"seed": 0}).keys()
    gpu = {"kind": "gpu", "name": "A GPU"}
    monkeypatch.setattr(provenance, "device", lambda kind: gpu)
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    alone = made({"seed": 0})
    assert alone["runs"] == [provenance.RUN]
    assert alone["environment"]["TRITON_INTERPRET"] == "1"
    assert made({"run": "b"}, {"run": "a"}, {"run": "b"})["runs"] == ["b", "a"]


def test_what_was_installed_has_a_hash_that_a_file_changes(monkeypatch):
    pytest.importorskip("transformers")
    found = provenance.installed("transformers")
    assert len(found) == 64 and found == provenance.installed("transformers")
    files = provenance.importlib.metadata.files("transformers")
    fewer = [f for f in files if f.name != "modeling_llama.py"]
    monkeypatch.setattr(provenance.importlib.metadata, "files", lambda _: fewer)
    assert provenance.installed("transformers") != found


def test_only_a_module_that_measures_a_package_records_its_hash(folder):
    plain = runner.trial("squares", folder=folder).provenance
    assert "installed" not in plain
    pytest.importorskip("transformers")
    module = types.SimpleNamespace(__doc__="x", INSTALLED=("transformers",))
    made = provenance.provenance("squares", module, [{"seed": 0}], folder=folder)
    assert made["installed"] == {"transformers": provenance.installed("transformers")}


def test_a_folder_of_another_repository_does_not_borrow_its_commit(
    monkeypatch, tmp_path
):
    """A source archive, unpacked inside somebody's repository."""
    monkeypatch.delenv("COMMIT", raising=False)
    git = ["git", "-c", "user.name=n", "-c", "user.email=e@example.org"]
    for command in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "one"]):
        subprocess.run([*git, *command], cwd=tmp_path, check=True)
    inside = tmp_path / "archive"
    inside.mkdir()
    monkeypatch.setattr(provenance, "ROOT", inside)
    assert provenance.commit() == "unknown"
    assert provenance.commit_date("abc1234") is None
    monkeypatch.setattr(provenance, "ROOT", tmp_path)
    head = provenance.commit().removesuffix("-dirty")
    assert provenance.commit_date(head) <= provenance.now()
    assert provenance.commit_date("0" * 40) is None  # of a history since rewritten
    assert provenance.commit_date("main") is None


@pytest.mark.parametrize("name", ["../x", "zh", "diagrams", "A", "a" * 61])
def test_a_machines_name_is_free(monkeypatch, name):
    monkeypatch.setenv("MACHINE", name)
    with pytest.raises(RecordError, match="no free lower-kebab name"):
        provenance.machine_name()


@pytest.mark.parametrize("name", records.experiments())
def test_no_run_ends_with_a_text_that_a_record_refuses(name):
    made = provenance._method(records.load_experiment(name))
    assert records.rows_problem(["method"], [{"method": made}]) is None
