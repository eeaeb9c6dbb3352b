#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compiles the libraries that a wheel contains, static, for one processor and for Linux since glibc 2.28:
#   tools/wheel/libraries.sh PROCESSOR FOLDER
# Makes FOLDER/toolchain.cmake, FOLDER/prefix and, for the licences, FOLDER/source/NAME. FOLDER/bin/run runs a program of
# the processor: for another one than that of this machine by qemu, with Debian's libraries and Python in FOLDER/system.
# Needs build/venv-wheel.
set -eu
cd "$(dirname "$0")/../.."
processor=$1
mkdir -p "$2"
folder=$(realpath "$2") # absolute: CMake and pkg-config keep it
python=$PWD/build/venv-wheel/bin/python
jobs=${PALIMPSEST_JOBS:-$(nproc)}
prefix=$folder/prefix
case $processor in
  x86_64) debian=amd64 long_double_digits=21 ;;
  aarch64) debian=arm64 long_double_digits=36 ;;
  *) echo "libraries.sh: got processor $processor, expected x86_64 or aarch64" >&2; exit 2 ;;
esac
mkdir -p "$folder/bin" "$folder/log" "$folder/source" "$folder/build" "$prefix/lib"

# Downloads from the archive servers of this machine's packages: apt_get COMMAND..., for $debian.
apt_get() {
  if [ ! -e "$folder/apt/updated" ]; then
    mkdir -p "$folder/apt/lists/partial" "$folder/apt/parts"
    touch "$folder/apt/status"
    sed 's/^Types: deb$/Types: deb deb-src/' /etc/apt/sources.list.d/debian.sources >"$folder/apt/parts/debian.sources"
    touch "$folder/apt/updated"
    apt_get update
  fi
  apt-get -o APT::Architecture=$debian -o APT::Architectures=$debian -o Dir::Etc::sourcelist=/dev/null \
    -o Dir::Etc::sourceparts="$folder/apt/parts" -o Dir::State::lists="$folder/apt/lists" \
    -o Dir::State::status="$folder/apt/status" -o APT::Sandbox::User=root "$@" >>"$folder/log/apt.log" 2>&1
}

# The runtime of C++ is Debian's libstdc++: what nanobind's backend and the machines have. What its shared library did not
# have yet in 2018 comes from the static one.
gcc=$(g++ -dumpversion)
runtime=$folder/runtime
includes="$PWD/tools/wheel/headers $runtime/usr/include/c++/$gcc $runtime/usr/include/$processor-linux-gnu/c++/$gcc"
compiler="exec \"$python\" -m ziglang"
options="-target $processor-linux-gnu.2.28 -fno-sanitize=undefined -g0"
# Before those of the C library, which libstdc++ includes as the next ones.
echo '#!/bin/sh' | tee "$folder/bin/cc" "$folder/bin/c++" "$folder/bin/ar" "$folder/bin/ranlib" >/dev/null
echo "$compiler cc $options \"\$@\"" >>"$folder/bin/cc"
echo "$compiler c++ $options -nostdlib++$(printf ' -I %s' $includes) \"\$@\"" >>"$folder/bin/c++"
echo "$compiler ar \"\$@\"" >>"$folder/bin/ar"
echo "$compiler ranlib \"\$@\"" >>"$folder/bin/ranlib"
chmod +x "$folder"/bin/*
if [ ! -e "$runtime/made" ]; then
  mkdir -p "$runtime/packages"
  (cd "$runtime/packages" && apt_get download "libstdc++-$gcc-dev" "libgcc-$gcc-dev" libstdc++6 libgcc-s1)
  for package in "$runtime"/packages/*.deb; do dpkg -x "$package" "$runtime"; done
  for name in libstdc++.so.6 libgcc_s.so.1; do
    "$python" tools/wheel/old_runtime.py "$folder/bin/cc" $processor "$(find "$runtime" -name $name)" "$runtime/${name%.so.*}.so"
  done
  "$folder/bin/cc" -O2 -fPIC -fvisibility=hidden -c tools/wheel/since_glibc_2_28.c -o "$runtime/since.o"
  # A script for the linker. As an object, for the compiler's driver moves libraries behind archives. With libgcc.a, since
  # __builtin_cpu_supports() of the compiler's own library knows nothing.
  static=$runtime/usr/lib/gcc/$processor-linux-gnu/$gcc
  echo "INPUT(AS_NEEDED($runtime/libstdc++.so) $static/libstdc++.a $static/libgcc.a" \
    "AS_NEEDED($runtime/libgcc_s.so) $runtime/since.o)" >"$runtime/libraries.o"
  touch "$runtime/made"
fi

cat >"$folder/toolchain.cmake" <<END
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR $processor)
set(CMAKE_CROSSCOMPILING_EMULATOR $folder/bin/run)
set(CMAKE_C_COMPILER $folder/bin/cc)
set(CMAKE_CXX_COMPILER $folder/bin/c++)
set(CMAKE_AR $folder/bin/ar)
set(CMAKE_RANLIB $folder/bin/ranlib)
set(CMAKE_CXX_STANDARD_LIBRARIES_INIT $runtime/libraries.o)
set(CMAKE_FIND_ROOT_PATH $prefix $("$python" -c 'import nanobind; print(nanobind.__path__[0])'))
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
END

if [ "$processor" = "$(uname -m)" ]; then
  printf '#!/bin/sh\nexec "$@"\n' >"$folder/bin/run"
elif [ ! -e "$folder/system/made" ]; then
  mkdir -p "$folder/system" "$folder/apt/cache/archives/partial"
  apt_get -o Dir::Cache="$folder/apt/cache" install -y --download-only --no-install-recommends python3.11 libstdc++6
  for package in "$folder"/apt/cache/archives/*.deb; do dpkg -x "$package" "$folder/system"; done
  printf '#!/bin/sh\nexec /usr/bin/qemu-%s-static -L "%s" "$@"\n' $processor "$folder/system" >"$folder/bin/run"
  touch "$folder/system/made"
fi
chmod +x "$folder/bin/run"

# unpack NAME: the source of a library, as tools/wheel_sources.txt has it.
unpack() {
  read -r _ package archive _ sha <<END
$(grep "^$1 " tools/wheel_sources.txt)
END
  downloads=build/wheel/sources
  mkdir -p "$downloads" "$folder/source/$1"
  if ! echo "$sha  $downloads/$archive" | sha256sum --check --quiet >/dev/null 2>&1; then
    # Only the archive counts: patches of a distribution may be missing on a server.
    (cd "$downloads" && apt_get source --download-only "$package") || true
    echo "$sha  $downloads/$archive" | sha256sum --check --quiet
  fi
  tar -xf "$downloads/$archive" -C "$folder/source/$1" --strip-components 1
}

# with_cmake NAME FOLDER_IN_SOURCE OPTIONS...
with_cmake() {
  name=$1 source=$folder/source/$1/$2 build=$folder/build/$1
  shift 2
  cmake -G Ninja -S "$source" -B "$build" -DCMAKE_TOOLCHAIN_FILE="$folder/toolchain.cmake" -DCMAKE_BUILD_TYPE=Release \
    -DBUILD_SHARED_LIBS=OFF -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DCMAKE_INSTALL_PREFIX="$prefix" \
    -DCMAKE_INSTALL_LIBDIR=lib "$@" && cmake --build "$build" --parallel "$jobs" --target install
}

make_zlib() {
  cd "$folder/source/zlib" && CC=$folder/bin/cc AR=$folder/bin/ar RANLIB=$folder/bin/ranlib CFLAGS='-O2 -fPIC' \
    ./configure --static --prefix="$prefix" && make -j "$jobs" libz.a && make install
}
make_fmt() { with_cmake fmt . -DFMT_TEST=OFF -DFMT_DOC=OFF; }
make_pugixml() { with_cmake pugixml .; }
make_xxhash() { with_cmake xxhash cmake_unofficial -DXXHASH_BUILD_XXHSUM=OFF; }
make_libpng() { with_cmake libpng . -DPNG_SHARED=OFF -DPNG_TESTS=OFF; }
make_highway() {
  with_cmake highway . -DHWY_ENABLE_EXAMPLES=OFF -DHWY_ENABLE_CONTRIB=OFF -DHWY_ENABLE_TESTS=OFF -DBUILD_TESTING=OFF
}
make_onetbb() { with_cmake onetbb . -DTBB_TEST=OFF -DTBB_STRICT=OFF -DTBBMALLOC_BUILD=OFF; }
make_hdf5() {
  # Digits of long double and of __float128: its configuration asks a program, which writes them into the current folder,
  # and which it does not run for other processors.
  mkdir -p "$folder/build/hdf5" && cd "$folder/build/hdf5"
  printf '%s;0;' $long_double_digits >pac_Cconftest.out
  with_cmake hdf5 . -DCMAKE_C_FLAGS='-w -Wno-implicit-int' -DHDF5_BUILD_CPP_LIB=OFF -DHDF5_BUILD_HL_LIB=OFF \
    -DHDF5_BUILD_TOOLS=OFF -DHDF5_BUILD_EXAMPLES=OFF -DHDF5_BUILD_FORTRAN=OFF -DBUILD_TESTING=OFF \
    -DHDF5_ENABLE_Z_LIB_SUPPORT=ON
}
for name in $(sed '/^#/d; s/ .*//' tools/wheel_sources.txt); do
  made=$folder/made-$name-$(grep "^$name " tools/wheel_sources.txt | cksum | tr ' ' -)
  [ ! -e "$made" ] || continue
  unpack $name
  (make_$name) >"$folder/log/$name.log" 2>&1 || { tail -n 20 "$folder/log/$name.log" >&2; exit 1; }
  touch "$made"
done

# Headers that are the same for all processors, and OpenBLAS as Debian compiles it: static, without threads.
for name in nlohmann CLI Random123; do cp -rp /usr/include/$name "$prefix/include/"; done
mkdir -p "$prefix/share/cmake"
cp -rp /usr/share/cmake/nlohmann_json /usr/share/cmake/CLI11 "$prefix/share/cmake/"
if [ ! -e "$folder/made-openblas" ]; then
  (cd "$folder" && apt_get download libopenblas-serial-dev && dpkg -x libopenblas-serial-dev_*.deb openblas)
  cp -p "$folder"/openblas/usr/lib/*/openblas-serial/libopenblas.a "$prefix/lib/"
  cp -p "$folder"/openblas/usr/include/*/openblas-serial/*.h "$prefix/include/"
  touch "$folder/made-openblas"
fi
# The headers of Python: the stable interface is the same for all processors with pointers of 64 bits.
mkdir -p "$prefix/include/python"
headers=$("$python" -c 'import sysconfig; print(sysconfig.get_path("platinclude"))')
cp -rpL "$headers/." "$prefix/include/python/"
multiarch=/usr/include/$("$python" -c 'import sysconfig; print(sysconfig.get_config_var("MULTIARCH"))')
[ ! -e "$multiarch/${headers##*/}/pyconfig.h" ] || cp -p "$multiarch/${headers##*/}/pyconfig.h" "$prefix/include/python/"
