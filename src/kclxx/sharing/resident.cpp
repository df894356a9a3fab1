// SPDX-License-Identifier: Apache-2.0
#include "sharing/resident.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <exception>
#include <fcntl.h>
#include <future>
#include <optional>
#include <string_view>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <system_error>
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
#include "io/lines.hpp"
#include "io/reactor.hpp"
#include "io/signals.hpp"

namespace kclxx::sharing {

namespace asio = boost::asio;
using asio::posix::stream_descriptor;

namespace {

/// A launcher, and the session of its shard after the hand-over. It belongs to the loop; the
/// session's thread uses the socket and the session in serve(), and has_ended.
struct connection : std::enable_shared_from_this<connection> {
  connection(io::descriptor&& fd, asio::io_context& context)
      : socket(std::move(fd)), watch(context, socket.get()) {}

  io::descriptor socket;
  stream_descriptor watch;
  std::optional<handed_shard> shard;
  std::shared_ptr<shard_session> session;
  std::future<void> thread_end;
  /// serve() has returned, or its thread was abandoned: whoever sets it ends the session.
  std::atomic<bool> has_ended = false;
  bool is_dropped = false;
};
using connection_ptr = std::shared_ptr<connection>;

/// Runs the event loop, where everything happens except for the sessions' own threads. Nothing on
/// the loop blocks, since all shards would wait.
class resident {
 public:
  resident(inheritance&& start, io::descriptor&& daemon, const session_maker& make_session)
      : start_(std::move(start)),
        make_session_(make_session),
        user_(user_of_peer(start_.connection.get())),
        daemon_(loop_.context, daemon.release()),
        listening_(loop_.context, start_.listening.release()) {
    auto starter = std::make_shared<connection>(std::move(start_.connection), loop_.context);
    first_ = starter.get();
    add(std::move(starter));
  }

  exit_status run(std::chrono::milliseconds grace_time) noexcept {
    accept();
    daemon_.async_wait(stream_descriptor::wait_read, [this](auto) { on_daemon_gone(); });
    loop_.context.run();
    if (listening_.is_open()) remove_socket(start_);
    const auto deadline = std::chrono::steady_clock::now() + grace_time;
    // Sessions have ended, but their threads may still run the destructors of thread_local objects.
    for (const std::future<void>& end : thread_ends_) {
      if (end.wait_until(deadline) != std::future_status::ready) is_stuck_ = true;
    }
    return is_stuck_ ? exit_status::callback_stuck : exit_status::ok;
  }

 private:
  void accept() {
    listening_.async_wait(stream_descriptor::wait_read, [this](auto) {
      if (!is_daemon_gone_) accept_launcher();
    });
  }

  void accept_launcher() {
    io::descriptor socket(::accept4(listening_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!socket.is_open()) return accept_later(errno);
    socket = above_standard(std::move(socket));
    if (socket.is_open()) serve_launcher(std::move(socket));
    accept();
  }

  /// accept4 has failed. The launcher may have left before it was accepted. Without descriptors or
  /// memory launchers wait.
  void accept_later(int error) {
    switch (error) {
      case EMFILE:
      case ENFILE:
      case ENOBUFS:
      case ENOMEM:
        pause_.expires_after(std::chrono::milliseconds(100));
        return pause_.async_wait([this](auto) {
          if (!is_daemon_gone_) accept();
        });
      case EBADF:
      case EINVAL:
      case ENOTSOCK:
        // User code has closed the socket. Launchers then execute the program themselves, and the
        // next one starts another resident.
        listening_.close();
        return;
      default:
        return accept();
    }
  }

  void serve_launcher(io::descriptor&& socket) {
    if (user_of_peer(socket.get()) != user_) {
      send_refused(socket.get(), "it serves another user");
    } else {
      add(std::make_shared<connection>(std::move(socket), loop_.context));
    }
  }

  void add(const connection_ptr& client) {
    connections_.insert(client);
    wait(client);
  }

  void wait(const connection_ptr& client) {
    client->watch.async_wait(stream_descriptor::wait_read, [this, client](auto) { hear(client); });
  }

  void hear(const connection_ptr& client) {
    if (client->is_dropped) return;
    if (!io::has_input(client->socket.get())) return wait(client);
    if (!client->session) return receive(client);
    // A launcher sends no second message, so it is gone, and with it the reader of its stderr.
    output_.remove(client->shard->error.get());
    client->session->end_input();
  }

  void receive(const connection_ptr& client) {
    try {
      auto message = receive_shard(client->socket.get(), start_.daemon);
      std::visit(overloaded{
                     [&](handed_shard& shard) { start(client, std::move(shard)); },
                     [&](const refusal& refused) { refuse(client, refused.reason); },
                     [&](const nothing&) { drop(client); },
                 },
                 message);
    } catch (const std::exception& error) {
      refuse(client, error.what());
    }
  }

  /// Errors: std::exception; then nothing of the shard is open.
  void start(const connection_ptr& client, handed_shard&& shard) {
    client->shard.emplace(std::move(shard));
    if (io::has_input(client->socket.get())) {  // the launcher has left
      close_shard(*client);
      return drop(client);
    }
    try {
      output_.add(client->shard->error.get());
      client->session =
          make_session_(*client->shard, loop_, [this, at = client.get()] { on_stuck(*at); });
      start_thread(client);
    } catch (const std::exception&) {
      if (client->session) client->session->leave_loop();
      close_shard(*client);
      throw;
    }
    wait(client);
  }

  /// The thread is not joined, since the destructors of thread_local objects are user code, for
  /// which the loop must not wait. A future tells of its end.
  void start_thread(const connection_ptr& client) {
    std::erase_if(thread_ends_, [](const std::future<void>& end) {
      return end.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
    });
    // The session's end must not fail for want of memory.
    thread_ends_.reserve(thread_ends_.size() + connections_.size());
    std::promise<void> end;
    client->thread_end = end.get_future();
    std::thread([this, at = client, end = std::move(end)]() mutable {
      end.set_value_at_thread_exit();
      serve(std::move(at));
    }).detach();
  }

  /// On the session's thread.
  void serve(connection_ptr client) {
    // The launcher keeps its descriptors until it hears that the shard is accepted.
    exit_status status = exit_status::daemon_gone;
    if (send_accepted(client->socket.get())) status = client->session->serve();
    // User code has returned late, when the loop has ended the session as stuck.
    if (client->has_ended.exchange(true)) return;
    for (const int fd : {client->socket.get(), daemon_.native_handle()}) {
      if (::fcntl(fd, F_GETFD) == -1) leave_without_descriptors();
    }
    // The connection must be destroyed on the loop. connections_ owns it until end() runs there, so
    // this thread gives up its share before it posts.
    connection& served = *client;
    client.reset();
    asio::post(loop_.context, [this, &served, status] {
      thread_ends_.push_back(std::move(served.thread_end));
      end(served.shared_from_this(), status);
    });
  }

  /// The loop may not hear of the daemon's end any longer: this process would stay, and hold the
  /// daemon's pipes open.
  [[noreturn]] static void leave_without_descriptors() {
    std::string_view line =
        "kclxx error: user code has closed descriptors of the library; the process of all shards "
        "ends\n";
    static_cast<void>(io::write_now(STDERR_FILENO, line));
    std::_Exit(static_cast<int>(exit_status::resident_gone));
  }

  /// Called on any thread, when the session's thread does not return from user code.
  void on_stuck(connection& stuck) {
    if (stuck.has_ended.exchange(true)) return;
    asio::post(loop_.context, [this, &stuck] {
      is_stuck_ = true;
      end(stuck.shared_from_this(), exit_status::callback_stuck);
    });
  }

  /// Tells the launcher of the shard's end, after all descriptors of the shard are closed.
  void end(const connection_ptr& client, exit_status status) {
    client->session->leave_loop();
    close_shard(*client);
    send_ended(client->socket.get(), static_cast<int>(status));
    drop(client);
  }

  void close_shard(connection& closed) {
    output_.remove(closed.shard->error.get());
    for (io::descriptor* fd : {&closed.shard->input, &closed.shard->output, &closed.shard->error}) {
      fd->close();
    }
  }

  void refuse(const connection_ptr& client, std::string_view reason) {
    send_refused(client->socket.get(), reason);
    drop(client);
  }

  void drop(const connection_ptr& client) {
    if (client.get() == first_) output_.no_shard_comes();
    client->is_dropped = true;
    client->watch.release();
    client->socket.close();
    connections_.erase(client);
    if (is_daemon_gone_ && connections_.empty()) loop_.context.stop();
  }

  /// The daemon's end has ended the pipes, unless a further process has them open.
  void on_daemon_gone() {
    is_daemon_gone_ = true;
    for (auto next = connections_.begin(); next != connections_.end();) {
      const connection_ptr at = *next++;
      if (at->session) {
        at->session->end_input();
      } else {
        drop(at);
      }
    }
    if (connections_.empty()) loop_.context.stop();
  }

  inheritance start_;
  const session_maker& make_session_;
  const std::optional<uid_t> user_;  // the launcher's; the program may have changed its own
  // All members belong to the loop. Further threads post functions to it.
  io::event_loop loop_;
  process_output output_;
  stream_descriptor daemon_;
  stream_descriptor listening_;
  asio::steady_timer pause_{loop_.context};
  /// Keeps the loop running: it does not know that a session's thread will post to it.
  asio::executor_work_guard<asio::io_context::executor_type> work_{loop_.context.get_executor()};
  std::unordered_set<connection_ptr> connections_;
  std::vector<std::future<void>> thread_ends_;  // of sessions that have ended
  /// The connection to the launcher that started this process. It may be gone: it is only compared.
  const connection* first_ = nullptr;
  bool is_daemon_gone_ = false;
  bool is_stuck_ = false;
};

/// A descriptor that becomes readable when the daemon ends. Errors: std::system_error; then the
/// socket is not there any more.
io::descriptor watch_daemon(const inheritance& start) {
  io::descriptor watched = io::open_process(start.daemon);
  if (watched.is_open()) return watched;
  const int error = errno;
  remove_socket(start);
  throw std::system_error(error, std::generic_category(), "the daemon");
}

}  // namespace

exit_status serve_shards(inheritance start, const session_maker& make_session,
                         std::chrono::milliseconds grace_time) {
  io::descriptor daemon = watch_daemon(start);
  // main may have asked for a signal at its parent's end, since it takes the parent for the daemon.
  // In fact the parent is the launcher of a single shard.
  ::prctl(PR_SET_PDEATHSIG, 0);
  auto serving = std::make_unique<resident>(std::move(start), std::move(daemon), make_session);
  const exit_status status = serving->run(grace_time);
  // An abandoned thread may use the resident until the process ends.
  if (status != exit_status::ok) static_cast<void>(serving.release());  // NOLINT(bugprone-*)
  return status;
}

}  // namespace kclxx::sharing
