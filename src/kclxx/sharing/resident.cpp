// SPDX-License-Identifier: Apache-2.0
#include "sharing/resident.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <exception>
#include <fcntl.h>
#include <memory>
#include <optional>
#include <poll.h>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/overloaded.hpp"
#include "io/event_loop.hpp"
#include "io/private_descriptors.hpp"
#include "io/signals.hpp"
#include "sharing/process_output.hpp"

namespace kclxx::sharing {

namespace asio = boost::asio;
using asio::posix::stream_descriptor;

namespace {

constexpr const char* no_descriptors = "it has no more descriptors (ulimit -n)";

constexpr std::chrono::milliseconds retry_after{100};

/// Open as long as it lives, and closed in a copy of the process.
class private_descriptor {
 public:
  explicit private_descriptor(io::descriptor&& fd) : fd_(std::move(fd)) {
    io::keep_private(fd_.get());
  }
  private_descriptor(const private_descriptor&) = delete;
  private_descriptor& operator=(const private_descriptor&) = delete;
  ~private_descriptor() { close(); }

  [[nodiscard]] int get() const noexcept { return fd_.get(); }
  void close() noexcept {
    if (fd_.is_open()) io::forget_private(fd_.get());
    fd_.close();
  }

 private:
  io::descriptor fd_;
};

/// A launcher, and the session of its shard once it has handed it over.
struct connection : std::enable_shared_from_this<connection> {
  connection(io::descriptor&& fd, asio::io_context& context)
      : socket(std::move(fd)), watch(context, socket.get()) {}

  private_descriptor socket;
  stream_descriptor watch;
  std::optional<handed_shard> shard;
  std::unique_ptr<shard_session> session;
  std::thread thread;
  std::atomic<bool> has_ended = false;  // its thread has returned, or was abandoned
  bool is_dropped = false;
};
using connection_ptr = std::shared_ptr<connection>;

/// The event loop: on it, all but the sessions.
class resident {
 public:
  resident(resident_start start, const session_maker& make_session)
      : start_(std::move(start)),
        make_session_(make_session),
        spare_(::open("/dev/null", O_RDONLY | O_CLOEXEC)),
        daemon_(loop_.context, watch(start_.daemon).release()),
        listening_(loop_.context, start_.listening.release()),
        retry_(loop_.context) {
    io::keep_private(listening_.native_handle());
    io::keep_private(start_.folder.get());
    first_ = add(std::move(start_.connection)).get();
  }
  ~resident() {
    io::forget_private(listening_.native_handle());
    io::forget_private(start_.folder.get());
  }
  resident(const resident&) = delete;
  resident& operator=(const resident&) = delete;

  exit_status run() {
    accept();
    daemon_.async_wait(stream_descriptor::wait_read, [this](auto) { on_daemon_gone(); });
    loop_.context.run();
    remove_socket(start_);
    return is_stuck_ ? exit_status::callback_stuck : exit_status::ok;
  }

 private:
  void accept() {
    listening_.async_wait(stream_descriptor::wait_read, [this](auto) {
      if (is_daemon_gone_) return;
      if (accept_one()) return accept();
      // The connection stays pending, so that to wait for it again would not wait.
      retry_.expires_after(retry_after);
      retry_.async_wait([this](auto) { accept(); });
    });
  }

  [[nodiscard]] io::descriptor accepted() {
    return io::descriptor(::accept4(listening_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC));
  }

  /// False when there is no descriptor, not even to refuse the connection.
  bool accept_one() {
    io::descriptor one = accepted();
    if (!one.is_open()) {
      // Its launcher executes the program itself; left alone, it would wait and keep this awake.
      spare_.close();
      one = accepted();
      const bool is_refused = one.is_open();
      if (is_refused) send_refused(one.get(), no_descriptors);
      one.close();
      spare_ = io::descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
      return is_refused;
    }
    if (is_own_peer(one.get())) add(std::move(one));
    return true;
  }

  connection_ptr add(io::descriptor&& fd) {
    auto added = std::make_shared<connection>(std::move(fd), loop_.context);
    connections_.insert(added);
    wait(added);
    return added;
  }

  void wait(const connection_ptr& at) {
    at->watch.async_wait(stream_descriptor::wait_read, [this, at](auto) {
      if (at->is_dropped) return;
      if (at->session) {
        // A launcher sends nothing more: it is gone, and with it who reads its stderr.
        output_.remove(at->shard->error.get());
        at->session->end_input();
      } else {
        receive(at);
      }
    });
  }

  void receive(const connection_ptr& at) {
    auto message = received(*at);
    std::visit(overloaded{
                   [&](handed_shard& shard) { start(at, std::move(shard)); },
                   [&](const refusal& why) { refuse(at, why.reason); },
                   [&](const nothing&) { drop(at); },
               },
               message);
  }

  std::variant<handed_shard, refusal, nothing> received(const connection& at) const {
    try {
      return receive_shard(at.socket.get(), start_.daemon);
    } catch (const std::exception& error) {
      return refusal{error.what()};
    }
  }

  void start(const connection_ptr& at, handed_shard&& shard) {
    try {
      at->shard.emplace(std::move(shard));
      for (const io::descriptor* fd : descriptors_of(*at)) io::keep_private(fd->get());
      output_.add(at->shard->error.get());
      at->session = make_session_(*at->shard, loop_, [this, at = at.get()] { on_stuck(*at); });
      at->thread = std::thread([this, at] { serve(at); });
    } catch (const std::exception& error) {
      if (at->session) at->session->leave_loop();
      close_shard(*at);
      return refuse(at, error.what());
    }
    wait(at);
  }

  /// On the session's thread.
  void serve(const connection_ptr& at) {
    // The launcher keeps its descriptors until it knows that they are not needed any more.
    exit_status status = exit_status::daemon_gone;
    if (send_accepted(at->socket.get())) status = at->session->serve();
    if (at->has_ended.exchange(true)) return;  // it was stuck
    asio::post(loop_.context, [this, at, status] {
      at->thread.join();
      end(at, status);
    });
  }

  void on_stuck(connection& of) {
    if (of.has_ended.exchange(true)) return;
    is_stuck_ = true;
    asio::post(loop_.context, [this, at = of.shared_from_this()] {
      at->thread.detach();
      end(at, exit_status::callback_stuck);
    });
  }

  /// The launcher hears of it when nothing of the shard is open any more.
  void end(const connection_ptr& at, exit_status status) {
    at->session->leave_loop();
    close_shard(*at);
    send_ended(at->socket.get(), static_cast<int>(status));
    drop(at);
  }

  static std::array<io::descriptor*, 3> descriptors_of(connection& of) {
    return {&of.shard->input, &of.shard->output, &of.shard->error};
  }

  void close_shard(connection& of) {
    output_.remove(of.shard->error.get());
    for (io::descriptor* fd : descriptors_of(of)) {
      io::forget_private(fd->get());
      fd->close();
    }
  }

  void refuse(const connection_ptr& at, const std::string& reason) {
    send_refused(at->socket.get(), reason);
    drop(at);
  }

  void drop(const connection_ptr& at) {
    if (at.get() == first_) output_.no_shard_comes();
    at->is_dropped = true;
    at->watch.release();
    at->socket.close();
    connections_.erase(at);
    if (is_daemon_gone_ && connections_.empty()) loop_.context.stop();
  }

  /// The pipes have ended by that, unless another process has them open.
  void on_daemon_gone() {
    is_daemon_gone_ = true;
    for (const connection_ptr& at : std::vector(connections_.begin(), connections_.end())) {
      if (at->session) {
        at->session->end_input();
      } else {
        drop(at);
      }
    }
    if (connections_.empty()) loop_.context.stop();
  }

  resident_start start_;
  const session_maker& make_session_;
  io::event_loop loop_;
  process_output output_;
  io::descriptor spare_;
  stream_descriptor daemon_;
  stream_descriptor listening_;
  asio::steady_timer retry_;
  /// A session's thread is work that the loop does not see.
  asio::executor_work_guard<asio::io_context::executor_type> work_{loop_.context.get_executor()};
  std::unordered_set<connection_ptr> connections_;
  const connection* first_ = nullptr;  // of the launcher that started this process; compared only
  bool is_daemon_gone_ = false;
  bool is_stuck_ = false;
};

}  // namespace

exit_status serve_shards(resident_start start, const session_maker& make_session) {
  return resident(std::move(start), make_session).run();
}

void refuse_shards(const resident_start& start, const std::string& reason) noexcept {
  remove_socket(start);
  pollfd look{start.connection.get(), POLLIN, {}};
  ::poll(&look, 1, -1);
  send_refused(start.connection.get(), reason);
}

}  // namespace kclxx::sharing
