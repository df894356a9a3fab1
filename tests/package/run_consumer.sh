#!/usr/bin/env bash
# How a user gets at the library: run_consumer.sh MODE BUILD_DIR SOURCE_DIR WORK_DIR
# Modes: find_package, fetch_content, pkg_config, samples, own_json, other_boost, debug_mode build a
# program outside of this project and have it answer a dialogue; googletest and fetch_content also build and run a test
# with the test kit; debs unpacks the packages; new builds what "kclxx new" makes; other_settings must not link;
# missing_dependency has none; parent has the targets of a project around this one.
set -euo pipefail
mode=$1 build=$2 source=$3 work=$4
rm -rf "$work" && mkdir -p "$work"
prefix=$work/prefix
# Without optimisation: it compiles in half the time, and code is not what is tested here.
export CMAKE_BUILD_TYPE=

configure_kclxx() {
  cmake -S "$source" -B "$work/kclxx" -G Ninja \
    -DKCLXX_BUILD_TESTS=OFF -DKCLXX_BUILD_SAMPLES=OFF -DKCLXX_BUILD_CLI=OFF "$@" >>"$work/log" 2>&1
}

build_project() {  # SOURCE, then CMake's arguments; the program lands in $work/program
  local from=$1
  shift
  cmake -S "$from" -B "$work/program" -G Ninja "$@" >>"$work/log" 2>&1
  cmake --build "$work/program" >>"$work/log" 2>&1
}

must_answer() {  # PROGRAM EXPECTED_ON_STDERR [ARGUMENT...]; reads the file $dialogue
  local out
  out=$("$1" "${@:3}" <"${dialogue:-$source/tests/package/dialogue.jsonl}" 2>"$work/stderr")
  grep -q '"responseFor":"shardEnded"' <<<"$out" || { echo "no answer: $out"; exit 1; }
  grep -q "$2" "$work/stderr" || { echo "not printed: $2"; cat "$work/stderr"; exit 1; }
}

# The user's project of most modes, and what its program prints of the dialogue.
consumer=$source/samples/print_records printed='key: hello'

compile() {  # SOURCE PROGRAM LIBRARY, then the compiler's arguments
  g++ -std=c++20 "${@:4}" -I"$prefix/include" "$1" -o "$2" "$3" -Wl,-rpath,"$(dirname "$3")" -pthread >>"$work/log" 2>&1
}

# The static library, and the shared one if it was built.
libraries() { find "$prefix" -name 'libkclxx.a' -o -name 'libkclxx.so'; }

must_not_link() {  # SYMBOL LIBRARY, then the compiler's arguments
  : >"$work/log"
  if compile "$consumer/print_records.cpp" "$work/consumer" "$2" "${@:3}"; then
    echo "${*:3} links with $2" && exit 1
  fi
  grep -q "kclxx::detail::$1" "$work/log" || { echo "not named: $1"; exit 1; }
}

must_test() {  # a program with the library, the test kit and GoogleTest
  rm -rf "$work/program"
  build_project "$source/tests/package/googletest" -DCMAKE_PREFIX_PATH="$prefix"
  "$work/program/word_length_test" >>"$work/log" 2>&1
  grep -q '\[  PASSED  \] 3 tests' "$work/log" || { echo 'not all tests ran'; exit 1; }
  out=$("$work/program/word_length_test" --child <"$source/tests/package/dialogue.jsonl" 2>>"$work/log")
  grep -q '"responseFor":"shardEnded"' <<<"$out" || { echo "no answer: $out"; exit 1; }
}

has_host() { grep -q '^KCLXX_BUILD_HOST:BOOL=ON' "$build/CMakeCache.txt"; }

pkg_config() {  # NAME OPTION...: of the installed kclxx
  PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name kclxx.pc)") pkg-config "${@:2}" "$1"
}

trap 'status=$?; ((status == 0 || status == 77)) || tail -n 40 "$work/log"' EXIT
case $mode in
  fetch_content | debug_mode | parent | missing_dependency) ;;  # the build is not what they are about
  *) cmake --install "$build" --prefix "$prefix" >"$work/log" 2>&1 ;;
esac
case $mode in
  find_package)
    build_project "$consumer" -DCMAKE_PREFIX_PATH="$prefix"
    must_answer "$work/program/print_records" "$printed"
    if has_host; then # The tool, and what the README copies for it.
      "$prefix/bin/kclxx" daemon check "$prefix/share/kclxx/properties/aws.properties" >"$work/check" || true
      grep -q 'executableName names' "$work/check" || { echo "no properties: $(<"$work/check")"; exit 1; }
    fi
    # Who asks for a component that was not built is told what it needs.
    find "$prefix" -name 'kclxxArchiveTargets*' -delete
    if cmake -S "$source/samples/archive" -B "$work/archive" -DCMAKE_PREFIX_PATH="$prefix" >"$work/message" 2>&1; then
      echo 'found a component that is not there' && exit 1
    fi
    tr -s ' \n' ' ' <"$work/message" | grep -q 'without its component archive, which needs libcurl' ||
      { cat "$work/message"; exit 1; }
    ;;
  debs)
    for program in file dpkg-shlibdeps; do # which CPack needs
      command -v $program >/dev/null || { echo "$program is not there" && exit 77; }
    done
    # The Debian packages of this build have all that is installed, each file once. scripts/package makes those
    # for users, and scripts/nightly installs them in a bare system.
    (cd "$work" && cpack --config "$build/CPackConfig.cmake" -G DEB -B "$work/debs") >"$work/log" 2>&1
    declare -A package_of
    for deb in "$work"/debs/*.deb; do
      name=$(dpkg-deb -f "$deb" Package)
      dpkg-deb --fsys-tarfile "$deb" | tar -t | grep -v '/$' >"$work/$name.files"
      while read -r file; do
        [[ -z ${package_of[$file]-} ]] || { echo "$file is in $name and ${package_of[$file]}"; exit 1; }
        package_of[$file]=$name
      done <"$work/$name.files"
      dpkg-deb -x "$deb" "$work/root"
    done
    while read -r file; do
      [[ $file == */LICENSE || -e $work/root/usr/local/$file ]] || { echo "in no package: $file"; exit 1; }
    done < <(cd "$prefix" && find . ! -type d)
    grep -q 'libkclxx\.so\.[0-9.]*$' "$work"/libkclxx0.*.files && grep -q 'bin/kclxx$' "$work/kclxx.files" &&
      grep -q 'libkclxx.a$' "$work/libkclxx-dev.files" || { echo 'a file is in the wrong package'; exit 1; }
    build_project "$consumer" -DCMAKE_PREFIX_PATH="$work/root/usr/local"
    must_answer "$work/program/print_records" "$printed"
    ;;
  fetch_content)
    # As of a release: an archive with its hash. As a shared library, several files compiled at once, and installed,
    # with absolute directories, as Nix and Guix have them.
    tar -C "$source" --exclude=./build --exclude=./.git -czf "$work/kclxx.tar.gz" .
    mkdir "$work/fetching"
    cat >"$work/fetching/CMakeLists.txt" <<EOF
cmake_minimum_required(VERSION 3.22)
project(fetching LANGUAGES CXX)
include(FetchContent)
FetchContent_Declare(kclxx URL $work/kclxx.tar.gz
  URL_HASH SHA256=$(sha256sum "$work/kclxx.tar.gz" | cut -d ' ' -f 1))
FetchContent_MakeAvailable(kclxx)
add_subdirectory($consumer consumer)
EOF
    build_project "$work/fetching" \
      -DCMAKE_UNITY_BUILD=ON -DBUILD_SHARED_LIBS=ON -DKCLXX_INSTALL=ON -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_INSTALL_LIBDIR="$prefix/lib" \
      -DCMAKE_INSTALL_INCLUDEDIR="$prefix/headers"
    must_answer "$work/program/consumer/print_records" "$printed"
    cmake --install "$work/program" >>"$work/log" 2>&1
    for directory in libdir includedir; do
      found=$(pkg_config kclxx --variable="$directory")
      [[ $found == "$prefix/"* && -d $found ]] || { echo "kclxx.pc: $directory=$found"; exit 1; }
    done
    rm -rf "$work/program"
    build_project "$consumer" -DCMAKE_PREFIX_PATH="$prefix"
    must_answer "$work/program/print_records" "$printed"
    # Nothing but the public interface is exported.
    library=$(find "$prefix" -name libkclxx.so)
    nm -DC --defined-only "$library" >"$work/exports"
    grep -q ' kclxx::run(' "$work/exports" || { echo 'does not export run()'; exit 1; }
    if grep -vE '^[0-9a-f]+ [A-Za-z] ((typeinfo|typeinfo name|vtable) for )?kclxx::' "$work/exports" ||
      grep -E 'kclxx::(session|protocol|io|runtime)::' "$work/exports"; then
      echo 'exports internals'
      exit 1
    fi
    must_test
    [[ $(ldd "$work/program/word_length_test") == *libkclxx.so* ]] || { echo 'not shared'; exit 1; }
    ;;
  pkg_config)
    # shellcheck disable=SC2046  # the flags are words
    g++ -std=c++20 "$consumer/print_records.cpp" -o "$work/consumer" \
      $(pkg_config kclxx --cflags --libs) >>"$work/log" 2>&1
    must_answer "$work/consumer" "$printed"
    ;;
  samples)
    samples=(archive word_count)
    if pkg-config --exists libpqxx; then samples=(clickstream "${samples[@]}"); fi
    for sample in "${samples[@]}"; do
      rm -rf "$work/program"
      build_project "$source/samples/$sample" -DCMAKE_PREFIX_PATH="$prefix" -DWORD_COUNT_BUILD_TESTS=ON
    done
    "$work/program/word_count_test" >>"$work/log" 2>&1
    # shellcheck disable=SC2046  # the flags are words
    g++ -std=c++20 "$source"/samples/archive/{main,processor}.cpp -o "$work/archive" \
      $(pkg_config kclxx-archive --cflags --libs) -lz >>"$work/log" 2>&1
    mkdir "$work/archived"
    must_answer "$work/archive" 'parked after 1 attempt' "$work/archived"
    ;;
  googletest)
    must_test
    # Each symbol is in one of the two libraries, so all of both can be linked.
    for all in '' '-Wl,--whole-archive'; do
      # shellcheck disable=SC2046,SC2086  # the flags are words
      g++ -std=c++20 "$source/tests/package/googletest/word_length_test.cpp" -o "$work/tests" \
        $(pkg_config kclxx-testing --cflags) $all $(pkg_config kclxx-testing --libs) \
        ${all:+-Wl,--no-whole-archive} -lgtest >>"$work/log" 2>&1
      "$work/tests" >>"$work/log" 2>&1
    done
    ;;
  own_json)
    # No symbol of a static library can meet one of the program's: each is in a namespace of ours, or of std.
    ours='[0-9]+kclxx(_boost|_nlohmann)?'
    kind='T[VIST]|Th?[nv]?[0-9_n]+|GV|'
    # shellcheck disable=SC2046  # the names are words
    nm --defined-only --extern-only $(find "$prefix" -name 'libkclxx*.a') | awk 'NF == 3 { print $3 }' |
      grep -vE "^_Z($kind)Z*N?[KRO]*($ours|St|S[absiod]|9__gnu_cxx)|^_ZT[IS]P?FSt|^DW\.ref\.|^kclxx_" >"$work/symbols" || true
    [[ ! -s $work/symbols ]] || { echo 'symbols that are not ours:' && c++filt <"$work/symbols" && exit 1; }
    # A byte that is no UTF-8 in a key, which no json::parse takes.
    sed 's/"partitionKey":"key"/"partitionKey":"k\xff"/; s/aGVsbG8=/eyJuIjoxfQ==/' "$source/tests/package/dialogue.jsonl" \
      >"$work/dialogue"
    for library in $(libraries); do
      compile "$source/tests/package/own_json/own_json.cpp" "$work/own_json" "$library"
      dialogue=$work/dialogue must_answer "$work/own_json" 'is JSON, key of 4 bytes'
    done
    ;;
  other_settings)
    # A program that is compiled otherwise does not link, and the linker names the cause.
    for library in $(libraries); do
      must_not_link needs_a_libkclxx_compiled_with_GLIBCXX_DEBUG "$library" -D_GLIBCXX_DEBUG
      must_not_link needs_a_libkclxx_compiled_with_GLIBCXX_DEBUG "$library" -D_GLIBCXX_DEBUG -O1 \
        -ffunction-sections -fdata-sections -Wl,--gc-sections
      must_not_link needs_a_libkclxx_compiled_with_GLIBCXX_USE_CXX11_ABI_0 "$library" -D_GLIBCXX_USE_CXX11_ABI=0
      compile "$consumer/print_records.cpp" "$work/consumer" "$library" -O1 -flto -Wall -Wextra -Werror \
        -ffunction-sections -fdata-sections -Wl,--gc-sections
      must_answer "$work/consumer" "$printed"
    done
    ;;
  debug_mode)
    configure_kclxx -DCMAKE_CXX_FLAGS=-D_GLIBCXX_DEBUG -DCMAKE_INSTALL_PREFIX="$prefix"
    cmake --build "$work/kclxx" >>"$work/log" 2>&1
    cmake --install "$work/kclxx" >>"$work/log" 2>&1
    library=$(libraries)
    compile "$consumer/print_records.cpp" "$work/consumer" "$library" -D_GLIBCXX_DEBUG
    must_answer "$work/consumer" "$printed"
    must_not_link needs_a_libkclxx_compiled_without_GLIBCXX_DEBUG "$library"
    ;;
  parent)
    # Headers of the machine, in a folder that tells them from the machine's.
    mkdir "$work/headers"
    ln -s "$(dirname "$(find /usr/include -path '*/nlohmann/json.hpp')")" "$work/headers/nlohmann"
    project() {  # then CMake's arguments
      rm -rf "$work/parent"
      cmake -S "$source/tests/package/parent" -B "$work/parent" -G Ninja -DKCLXX_SOURCE="$source" \
        -DPARENT_HEADERS="$work/headers" "$@" >"$work/log" 2>&1
    }
    # What the project has is taken, though it may be downloaded.
    project -DPARENT_IS_FIRST=ON -DKCLXX_BUILD_CLI=ON -DKCLXX_FETCH_DEPENDENCIES="$work/nothing"
    grep -A9 'build .*kclxx_protocol.dir/.*cxx.o:\|build .*/decoder.cpp.o:' "$work/parent/build.ninja" |
      grep -q "$work/headers" || { echo 'the headers are not those of the project'; exit 1; }
    cmake --build "$work/parent" --target kclxx_protocol >>"$work/log" 2>&1
    # What is downloaded leaves the names to the project.
    mkdir -p "$work"/{json/single_include,cli/include}
    project -DPARENT_IS_FIRST=OFF -DKCLXX_BUILD_CLI=ON -DKCLXX_FETCH_DEPENDENCIES=ON \
      -DFETCHCONTENT_SOURCE_DIR_KCLXX_NLOHMANN_JSON="$work/json" -DFETCHCONTENT_SOURCE_DIR_KCLXX_CLI11="$work/cli"
    ;;
  other_boost)
    # The library with the machine's Boost, the program with 1.74; and with 1.74 what the library has of Boost.
    boost174=${OTHER_BOOST-}
    [[ -d $boost174 ]] || { echo 'OTHER_BOOST is not the folder of an unpacked libboost1.74-dev' && exit 77; }
    for library in $(libraries); do
      compile "$source/tests/package/other_boost/other_boost.cpp" "$work/other_boost" "$library" \
        -isystem "$boost174/usr/include"
      must_answer "$work/other_boost" 'Boost 107400: 2 steps, 1 records'
    done
    configure_kclxx -DBoost_ROOT="$boost174/usr" -DBoost_NO_BOOST_CMAKE=ON \
      -DBoost_INCLUDE_DIR="$boost174/usr/include"
    cmake --build "$work/kclxx" --target kclxx_io kclxx_sharing >>"$work/log" 2>&1
    ;;
  new)
    # What "kclxx new" makes builds, and its own test passes; as a child it answers.
    export CMAKE_PREFIX_PATH=$prefix PATH=$prefix/bin:$PATH KCLXX_PARKING_DIR=$work
    for form in each batches class asio json archive; do
      printed='got 5 bytes' arguments=()
      [[ $form != json && $form != archive ]] || printed='parked after 1 attempt' # the data is no JSON
      [[ $form != archive ]] || arguments=("$work/made-archive/build/archived")
      (cd "$work" && kclxx new "made-$form" --form "$form") >>"$work/log" 2>&1
      cmake -S "$work/made-$form" -B "$work/made-$form/build" -G Ninja >>"$work/log" 2>&1
      cmake --build "$work/made-$form/build" >>"$work/log" 2>&1
      ctest --test-dir "$work/made-$form/build" --output-on-failure --no-tests=error >>"$work/log" 2>&1
      must_answer "$work/made-$form/build/made-$form" "$printed" "${arguments[@]}"
      if has_host; then
        (cd "$work/made-$form/build" && AWS_REGION=eu-central-1 kclxx daemon check --strict "../made-$form.properties") \
          >>"$work/log" 2>&1
      fi
    done
    if grep -rn '{{' "$work"/made-*/[!b]* >>"$work/log"; then echo 'something was not replaced' && exit 1; fi
    if (cd "$work" && kclxx new made-each) 2>"$work/stderr"; then echo 'written over a project' && exit 1; fi
    grep -q 'made-each is there already' "$work/stderr"
    if (cd "$work" && kclxx new 'a b') 2>>"$work/log"; then echo 'a name with a blank was taken' && exit 1; fi
    ;;
  missing_dependency)
    for missing in 'Boost libboost-dev' 'nlohmann_json nlohmann-json3-dev' \
      'CLI11 libcli11-dev' 'Catch2 catch2'; do
      read -r name package <<<"$missing"
      rm -rf "$work/kclxx"
      if cmake -S "$source" -B "$work/kclxx" -G Ninja "-DCMAKE_DISABLE_FIND_PACKAGE_$name=ON" \
        >"$work/log" 2>&1; then
        echo "configured without $name"
        exit 1
      fi
      tr -s ' \n' ' ' <"$work/log" | grep "kclxx needs $name .* apt-get install $package" >/dev/null
    done
    ;;
  *)
    echo "unknown mode $mode"
    exit 2
    ;;
esac
echo "$mode: ok"
