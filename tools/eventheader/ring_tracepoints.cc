#include "tools/eventheader/ring_tracepoints.h"

#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "tools/base/status_macros.h"
#include "tools/control/messages.h"

namespace tools {
namespace {

// Maximum time to wait for an answer of the daemon.
constexpr absl::Duration kAnswerTime = absl::Seconds(10);

}  // namespace

std::vector<Tracepoint> RingTracepoints(const control::ServicesStatus& services,
                                        const std::vector<std::string>& patterns) {
  struct Users {
    std::uint64_t services = 0;
    bool is_inline = true;
    std::set<std::string> sessions;
  };
  std::map<std::string, Users> by_name;
  for (const control::ServiceStatus& service : services.services) {
    std::set<std::string> names;
    for (const control::ServiceStatus::Tracepoint& tracepoint : service.tracepoints) {
      if (!MatchesAny(tracepoint.name, patterns)) continue;
      Users& users = by_name[tracepoint.name];
      // A service that lists a name twice counts once.
      if (names.insert(tracepoint.name).second) ++users.services;
      users.is_inline = users.is_inline && service.transport == "inline";
      for (const std::string& session : tracepoint.sessions) {
        users.sessions.insert(absl::StrCat("nettraced:", session));
      }
    }
  }
  std::vector<Tracepoint> tracepoints;
  for (const auto& [name, users] : by_name) {
    Tracepoint& tracepoint = tracepoints.emplace_back();
    tracepoint.name = name;
    tracepoint.used_by = absl::StrJoin(users.sessions, " ");
    tracepoint.services = users.services;
    tracepoint.is_inline = users.is_inline;
  }
  return tracepoints;
}

absl::StatusOr<control::ServicesStatus> ServicesClient::List() {
  if (!client_) {
    ASSIGN_OR_RETURN(client_, control::ControlClient::Connect(socket_, kAnswerTime));
  }
  const absl::StatusOr<rapidjson::Document> reply = client_->Call("Services", "{}");
  if (!reply.ok()) {
    client_.reset();
    return reply.status();
  }
  return control::ParseServices(*reply);
}

absl::Status NeitherAnswers(const absl::Status& of_kernel, const absl::Status& of_daemon) {
  return absl::Status(of_kernel.code(),
                      absl::StrCat(of_kernel.message(),
                                   "; for services that use shared memory: ", of_daemon.message()));
}

}  // namespace tools
