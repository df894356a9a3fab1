// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace kclxx::observability {

/// A socket to journald. Thread safety: const functions from any thread.
class journald_socket {
 public:
  /// Whether the descriptor is the one that JOURNAL_STREAM names: "device:inode".
  static bool is_stream(int fd, std::string_view journal_stream);

  explicit journald_socket(std::string path = "/run/systemd/journal/socket");
  ~journald_socket();
  journald_socket(const journald_socket&) = delete;
  journald_socket& operator=(const journald_socket&) = delete;

  /// False when journald does not take it. Blocking: no.
  [[nodiscard]] bool send(std::string_view datagram) const noexcept;

 private:
  std::string path_;
  int socket_;
};

}  // namespace kclxx::observability
