# SPDX-License-Identifier: Apache-2.0
"""The cases: what both programs are told, and what is wanted of agreement, time and memory."""

from dataclasses import dataclass, field, replace


@dataclass
class Case:
    name: str
    data: str  # the method of Data that makes it
    bart: list  # words of `pics` or `ecalib` without files and -i
    ours: list  # words of `recon` or `maps` without files and --iterations
    command: str = "recon"
    iterations: int = 0  # of the images that are compared
    lengths: tuple = ()  # iterations of the two runs whose difference is timed; (): whole runs
    agreement: float = 0  # wanted NRMSE, at most; 0: none is
    ratio: float = 0  # wanted time of BART over ours, at least
    peak: float = 0  # wanted peak of BART over ours, at least
    note: str = ""
    timed: tuple = ()  # words for both in place of those above where iterations are timed
    memory: float = 0  # part of the plan that --memory allows
    with_budget: bool = True  # is 60 % of the plan tried?
    is_scaled_alike: bool = False  # does BART get the scale of ours? Of a series it takes another one
    has_last_step: bool = False  # is ours compared after the step with which BART's FISTA ends?
    files: dict = field(default_factory=dict)

    def to_time(self):
        return replace(self, bart=self.timed[0], ours=self.timed[1]) if self.timed else self

    def bart_words(self, iterations):
        f = self.files
        if self.command == "maps":
            return ["ecalib", *self.bart, f["kspace"], "theirs"]
        return ["pics", "-S", *self.bart, "-i", str(iterations), f["kspace"], f["maps"], "theirs"]

    def our_words(self, iterations, name="own"):
        f = self.files
        if self.command == "maps":
            return ["maps", f["kspace"] + ".cfl", name + ".cfl", *self.ours]
        # Conjugate gradients would otherwise end at a residual.
        return ["recon", f["kspace"] + ".cfl", "--maps", f["maps"] + ".cfl", "--save",
                name + ".cfl", *self.ours, "--iterations", str(iterations), "--tolerance", "0"]

    def is_volume(self):
        return self.data in ("volume", "koosh", "koosh128")


def files(data):
    return {"kspace": data, "maps": data + "_maps"}


def along(*words, spokes="spokes"):
    return [*words, "-t", spokes]


def ours_along(reg, spokes="spokes"):
    return ["--reg", reg, "--trajectory", spokes + ".cfl"]


def pics(name, data, bart, reg, **wanted):
    spokes = {"radial": "spokes", "koosh": "koosh_spokes",
              "koosh128": "koosh128_spokes"}.get(data)
    bart, ours = list(bart), ["--reg", reg]
    if spokes:
        bart, ours = along(*bart, spokes=spokes), ours_along(reg, spokes)
    return Case(name, data, bart, ours, files=files(data), **wanted)


def maps(name, data, bart, ours=(), **wanted):
    return Case(name, data, list(bart), list(ours), command="maps", files=files(data), **wanted)


TV, TGV, LLR = (["-R", text + ":0.01"] for text in ("T:7:0", "G:7:0", "L:7:7"))
PLAIN_LLR = "llr(Nx=8,Ny=8;T):0.01,scale=bart,shift=none"


def on_the_plane():
    return [
        maps("`maps`, 1 set, against `ecalib -O`", "brain", ["-O", "-m1"], agreement=1e-4,
             ratio=1.2),
        maps("`maps`, 2 sets, against `ecalib -O`", "brain", ["-O", "-m2"], ["--sets", "2"],
             agreement=1e-4, ratio=1.2),
        maps("`maps`, 1 set, against the default of `ecalib`", "brain", ["-m1"], agreement=0.02,
             ratio=1.2, with_budget=False),
        maps("`maps`, 2 sets, against the default of `ecalib`", "brain", ["-m2"], ["--sets", "2"],
             ratio=1.2, with_budget=False),
        pics("`l2:0.01`", "brain", ["-l2", "-r0.01"], "l2:0.01", iterations=30, lengths=(10, 50),
             agreement=1e-4, ratio=1.5),
        pics("`tv:0.01`", "brain", TV, "tv:0.01", iterations=500, lengths=(100, 300),
             agreement=1e-3, ratio=2.5),
        pics("`tv:0.01`, 100 iterations against 500", "brain", TV, "tv:0.01", iterations=(500, 100),
             agreement=0.01, with_budget=False),
        pics("`l1wav:0.01`, random shifts", "brain", ["-l1", "-r0.01"], "l1wav:0.01",
             iterations=100, lengths=(30, 130), agreement=0.05, ratio=1.5),
        pics("`l1wav:0.01`, no shifts", "brain", ["-n", "-l1", "-r0.01"], "l1wav:0.01,shift=none",
             iterations=100, lengths=(30, 130), agreement=0.06, ratio=1.5,
             note="another rule at the edges"),
        pics("`tgv:0.01`", "brain", TGV, "tgv:0.01", iterations=500, lengths=(100, 300),
             agreement=0.01, ratio=2.5),
        pics("`llr`, 20 frames, fixed shift", "series", ["-n", "-b8", *LLR], PLAIN_LLR,
             iterations=60, lengths=(10, 30), agreement=0.01, ratio=2, peak=1.5,
             is_scaled_alike=True, has_last_step=True),
        # With BART's weight our iteration converges after 30 steps, too few to be timed.
        pics("radial, `l2:1`", "radial", ["-l2", "-r1"], "l2:1", iterations=50, lengths=(20, 220),
             agreement=0.005, ratio=2, timed=(along("-l2", "-r1e-6"), ours_along("l2:1e-6"))),
    ]


def on_the_volume():
    return [
        maps("`maps`, volume", "volume", ["-O", "-m1"], agreement=1e-3, ratio=2, peak=4),
        pics("`l2:0.01`, volume", "volume", ["-l2", "-r0.01"], "l2:0.01", iterations=40,
             lengths=(4, 12), ratio=4, peak=2.5),
        pics("`tv:0.01`, volume", "volume", TV, "tv:0.01", iterations=40,
             lengths=(20, 40), peak=2),
        pics("`l1wav:0.01`, volume", "volume", ["-l1", "-r0.01"], "l1wav:0.01", iterations=8,
             lengths=(3, 8), ratio=3, peak=1.5),
        pics("`l1wav:0.01`, volume, no shifts", "volume", ["-n", "-l1", "-r0.01"],
             "l1wav:0.01,shift=none", iterations=8, lengths=(3, 8), peak=1.5),
        pics("`tgv:0.01`, volume", "volume", TGV, "tgv:0.01", iterations=40,
             lengths=(20, 40), peak=2),
        pics("radial in 3-D, `l2:1`", "koosh", ["-l2", "-r1"], "l2:1", iterations=40,
             lengths=(4, 12), peak=1.5),
        pics("radial in 3-D, 128^3, `l2:1`", "koosh128", ["-l2", "-r1"], "l2:1", iterations=8,
             lengths=(2, 8), ratio=3, peak=3, with_budget=False),
        pics("CG-SENSE, volume, `--memory` 40 %", "volume", ["-l2", "-r0.01"], "l2:0.01",
             iterations=40, lengths=(4, 12), agreement=1e-4, ratio=4, peak=6, memory=0.4),
    ]
