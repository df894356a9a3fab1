// SPDX-License-Identifier: Apache-2.0
// Keeps the number of bytes that its shard's records have in a file: counting_child DIRECTORY.
#include <cstddef>
#include <fcntl.h>
#include <stdexcept>
#include <string>
#include <unistd.h>

#include <kclxx/kclxx.hpp>
#include <kclxx/processing/batches.hpp>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::string name = std::string(argv[1]) + "/" + std::to_string(::getpid());
  const int file = ::open(name.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (file == -1) return 1;
  std::size_t bytes = 0;
  return kclxx::run(kclxx::batches([&](const kclxx::record_batch& batch) {
    for (const kclxx::record& record : batch) bytes += record.data().size();
    const std::string text = std::to_string(bytes);  // never shorter than before
    if (::pwrite(file, text.data(), text.size(), 0) == -1) throw std::runtime_error("not written");
  }));
}
