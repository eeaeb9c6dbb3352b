// SPDX-License-Identifier: Apache-2.0
// palimpsest help: texts that belong to several commands.

#include "palimpsest/cli/manual.hpp"
#include "palimpsest/cli/prelude.hpp"

namespace palimpsest::cli {
namespace {

constexpr const char* kReg =
    R"(Regularizers: --reg NAME[(DIMS)][:LAMBDA][,KEY=VALUE]..  Several --reg add up.

  l2:X                 X/2 |x|^2
  l1(DIMS):X           X |x|_1
  l1wav(DIMS):X        X |W x|_1; wavelet=db2, levels=auto, shift=random|none, joint=M
  l1fft(DIMS):X        X |F x|_1, F the unitary transform along DIMS
  tv(DIMS):X           X sum |grad x|; iso=1|0, boundary=periodic|neumann|zero,
                       direction=backward|forward
  tgv(DIMS):X          total generalized variation of second order; ratio=2; beside it only l2
  lr(;T):X             nuclear norm of the matrix voxels x T
  llr(Nx=8,Ny=8;T):X   the same of every block; shift=random|none, scale=none|bart
  nonneg, real         constraints
  ball:E               |A x - y| <= E in place of |A x - y|^2 / 2, for all data of a slice

DIMS are names of the image such as Nx,Ny or T, with --basis B for T; by default all of Nx Ny Nz. X
is relative to the brightness of the data, so that it suits other scans too.
Example: --reg l1wav:0.01 --reg 'tv(T):0.02'
)";

constexpr const char* kFormats =
    R"(Formats. Inputs are told by their content, outputs by the ending of their name.

  .npy           NumPy array, axes slow to fast
  .cfl, .hdr     BART: two files; axes in BART's order x y z coil set .. T(10) .. slice(13)
  .nii, .nii.gz  NIfTI: place (sform, qform), spacing, time step; complex64 or --part
  .h5, .mrd      ISMRMRD: raw scans are read, images written with position and directions
  .png           one plane, or a montage of all with one window
  .json, .html   reports
)";

constexpr const char* kDimensions = R"(Dimensions, slow to fast: (S, T, M, C, Nz, Ny, Nx).

  Nx Ny Nz   image or k-space grid along x (readout), y, z
  C          coils, physical or virtual
  M          sets of maps
  T          frames: repetitions, phases
  B          coefficients of a basis of the frames (recon --basis); BART's dimension 6
  S          slices
  B5 .. B15  BART's other dimensions

Arrays without names (NPY) end in (.., T, Nz, Ny, Nx); --axes of `convert` names them otherwise.
k-space has its centre at index n/2. Trajectories are in cycles per field of view, fields of view
in mm, times in us, angles in degrees.
)";

constexpr const char* kExitCodes = R"(Exit codes

  0    done
  1    failed: disk, memory, a diverged iteration
  2    the command line or an input is wrong; nothing was written
  3    ended by --time-limit; the image so far is written
  4    with --strict: the iteration has not converged; its image is written
  130  interrupted: no image is written, or with --partial-on-interrupt that so far
)";

constexpr const char* kBart = R"(From BART

  pics -l1 -r 0.01 -i 100 ksp maps out   recon ksp --maps maps --reg l1wav:0.01 --iterations 100
                                           --save out.cfl --keep-scale
  pics -l2 -r X                          --reg l2:X
  pics -R T:7:0:X                        --reg tv:X
  pics -R G:7:0:X                        --reg tgv:X
  pics -R T:1024:0:X                     --reg 'tv(T):X'
  pics -R L:7:7:X -b 8                   --reg 'llr(Nx=8,Ny=8,Nz=8;T):X,scale=bart',
                                           of planes without Nz=8
  pics -P X -R T:7:0:Y                   --reg ball:X --reg tv:Y
  pics -S                                the default
  pics -t traj                           --trajectory traj
  pics -p weights                        --weights squares, those of the weights
  pics -W start                          --start start
  pics -B basis                          --basis basis
  ecalib -t 0.001 -c 0.8 -k 6 -r 24 -m 2 maps --threshold 0.001 --crop 0.8 --kernel 6
                                           --calibration 24 --sets 2
  caldir 24                              maps --method direct --calibration 24
  walsh                                  maps --method walsh
  whiten ksp noise out                   whiten ksp out --noise noise
  cc -p 8 -G                             compress --to 8 --method geometric
  poisson -Y 128 -Z 128 -y 2 -z 2 -C 24  pattern mask.npy --size 128,128 --acceleration 4
                                           --center 24
  upat -Y 128 -y 2 -c 24                 pattern mask.npy --kind caipi --size 128,1 --step 2,1
                                           --center 24
  traj -x 64 -y 33 -r                    traj t.npy --kind radial --samples 64 --spokes 33
                                           --oversampling 1 --convention bart
  fft -u 7, fft -u -i 7                  fft --dims Nx:Ny:Nz, fft --inverse --dims Nx:Ny:Nz
  nufft traj img ksp, nufft -a, nufft -i nufft img ksp --trajectory traj, --adjoint, --inverse
  nufft -i -l X                          nufft --inverse --reg l2:X
  fakeksp img ksp maps out, -r           simulate out.cfl --fake-kspace --image img --maps maps,
                                           --replace ksp
  phantom -x 128, phantom -k             phantom p.npy --size 128,128, --kspace; rows there are
                                           columns here
  toimg                                  show
  slice 0 10, resize 0 48                convert --slice Nx=10, convert --slice Nx=0:48
  nrmse, view, show -m                   compare, show, info
)";

// Text below the list of commands.
constexpr const char* kOverviewEnd = R"(
A command explains its options: palimpsest COMMAND --help
Topics: palimpsest help overview | reg | formats | dimensions | exit-codes | bart | man
)";

struct Topic {
  const char* name;
  const char* text;
};
constexpr Topic kTopics[] = {{"overview", ""},
                             {"reg", kReg},
                             {"formats", kFormats},
                             {"dimensions", kDimensions},
                             {"exit-codes", kExitCodes},
                             {"bart", kBart},
                             {"man", ""}};

}  // namespace

const std::vector<std::string>& help_topics() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Topic& topic : kTopics) all.emplace_back(topic.name);
    return all;
  }();
  return names;
}

std::string help_text(const std::string& topic) {
  const auto* const found = std::find_if(std::begin(kTopics), std::end(kTopics),
                                         [&](const Topic& t) { return topic == t.name; });
  return found == std::end(kTopics) ? "" : found->text;
}

void add_help(CommandLine& line) {
  const auto topic = std::make_shared<std::string>("overview");
  line.add("help",
           "Print a text that belongs to several commands, or the manual page (man, as roff)")
      .word("TOPIC", help_topics(), *topic, "Topic")
      .action([topic, &line] {
        print_to_reader(*topic == "man"        ? manual_page(line.facts(), PALIMPSEST_VERSION)
                        : *topic == "overview" ? line.help() + kOverviewEnd
                                               : help_text(*topic));
      });
}

}  // namespace palimpsest::cli
