// A control::Service for tests without a daemon. Its sessions are in memory, and its tails send
// texts that the test sets.
#ifndef TESTS_SUPPORT_COLLECTOR_FAKE_SERVICE_H_
#define TESTS_SUPPORT_COLLECTOR_FAKE_SERVICE_H_

#include <sys/socket.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tools/control/service.h"

// A service with the sessions "web" (files) and "box" (a flight recorder). Requests change their
// status.
class FakeService : public control::Service {
 public:
  using SessionStatus = control::SessionStatus;

  FakeService() {
    Add("box", "flight");
    Add("web", "files");
  }

  // Changes a session under the lock.
  template <typename Change>
  void Update(const std::string& name, const Change& change) {
    const std::lock_guard lock(mutex_);
    change(&sessions_[name]);
  }
  // Returns how often the session's status was requested.
  int Asked(const std::string& name) {
    const std::lock_guard lock(mutex_);
    return asked_[name];
  }
  // Bytes that a tail sends after the bytes that StartTail receives, and at its end.
  std::string tail_body = "body";
  std::string tail_end = "end";
  std::atomic<int> tails = 0;  // Tails that exist.
  std::atomic<int> reloads = 0;

  std::vector<SessionStatus> List() override {
    const std::lock_guard lock(mutex_);
    std::vector<SessionStatus> all;
    for (const auto& [name, session] : sessions_) all.push_back(session);
    return all;
  }
  absl::StatusOr<SessionStatus> Status(std::string_view session) override {
    const std::lock_guard lock(mutex_);
    ++asked_[std::string(session)];
    const auto found = sessions_.find(std::string(session));
    if (found == sessions_.end()) return NoSession(session);
    return found->second;
  }
  absl::Status Start(std::string_view session) override {
    return SetState(session, SessionStatus::State::kRunning);
  }
  absl::StatusOr<std::vector<std::string>> StartFrom(std::string_view toml) override {
    if (toml != "[session.new]\n") {
      return absl::InvalidArgumentError("the request:1: 'x' is no key\nthe request:2: no selector");
    }
    const std::lock_guard lock(mutex_);
    Add("new", "files");
    return std::vector<std::string>{"new"};
  }
  absl::Status Stop(std::string_view session) override {
    return SetState(session, SessionStatus::State::kStopped);
  }
  absl::StatusOr<std::string> Rotate(std::string_view session) override {
    const std::lock_guard lock(mutex_);
    const auto found = sessions_.find(std::string(session));
    if (found == sessions_.end()) return NoSession(session);
    if (found->second.kind != "files") {
      return absl::FailedPreconditionError(
          absl::StrCat("session ", found->first, " writes no files that follow one another"));
    }
    return absl::StrCat("/files/", found->first, "-", ++found->second.files);
  }
  absl::StatusOr<std::string> Snapshot(std::string_view session, absl::Duration after) override {
    const std::lock_guard lock(mutex_);
    const auto found = sessions_.find(std::string(session));
    if (found == sessions_.end()) return NoSession(session);
    ++found->second.snapshots;
    return absl::StrCat("/files/", found->first, "-after-", absl::FormatDuration(after));
  }
  absl::Status Reload() override {
    ++reloads;
    return absl::OkStatus();
  }
  absl::StatusOr<control::ServicesStatus> Services() override {
    const std::lock_guard lock(mutex_);
    return services_;
  }
  void SetServices(control::ServicesStatus services) {
    const std::lock_guard lock(mutex_);
    services_ = std::move(services);
  }
  absl::StatusOr<std::unique_ptr<control::Tail>> StartTail(std::string_view session,
                                                           base::UniqueFd socket,
                                                           std::string first) override {
    if (!Status(session).ok()) return NoSession(session);
    return std::make_unique<FakeTail>(this, std::move(socket), first + tail_body);
  }

 private:
  // Sends the text from a separate thread as long as the socket accepts data. The destructor sends
  // FakeService::tail_end.
  class FakeTail : public control::Tail {
   public:
    FakeTail(FakeService* service, base::UniqueFd socket, std::string text)
        : service_(service), socket_(std::move(socket)), thread_([this, text = std::move(text)] {
            // Counts before it sends the text, so that a test that reads the text sees the count.
            ++service_->tails;
            SendAll(text);
          }) {}
    ~FakeTail() override {
      thread_.join();
      SendAll(service_->tail_end);
      --service_->tails;
    }
    bool IsEnded() override { return has_failed_; }

   private:
    void SendAll(std::string_view text) {
      while (!text.empty()) {
        const ssize_t sent = send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL);
        if (sent <= 0) {
          has_failed_ = true;
          return;
        }
        text.remove_prefix(static_cast<std::size_t>(sent));
      }
    }

    FakeService* const service_;
    const base::UniqueFd socket_;
    std::atomic<bool> has_failed_ = false;
    std::thread thread_;
  };

  static absl::Status NoSession(std::string_view name) {
    return absl::NotFoundError(absl::StrCat("there is no session '", std::string(name), "'"));
  }
  void Add(const std::string& name, const std::string& kind) {
    SessionStatus& session = sessions_[name];
    session.name = name;
    session.kind = kind;
    session.state = SessionStatus::State::kRunning;
    session.started = session.state_since = absl::Now();
  }
  absl::Status SetState(std::string_view name, SessionStatus::State state) {
    const std::lock_guard lock(mutex_);
    const auto found = sessions_.find(std::string(name));
    if (found == sessions_.end()) return NoSession(name);
    found->second.state = state;
    found->second.state_since = absl::Now();
    return absl::OkStatus();
  }

  std::mutex mutex_;
  std::map<std::string, SessionStatus> sessions_;
  std::map<std::string, int> asked_;
  control::ServicesStatus services_;
};

#endif  // TESTS_SUPPORT_COLLECTOR_FAKE_SERVICE_H_
