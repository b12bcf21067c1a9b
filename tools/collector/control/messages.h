// The messages of the control socket, as both ends need them: varlink's framing (JSON objects, each
// followed by a NUL), the names of methods and errors, and SessionStatus as JSON.
//
// What comes is hostile for both ends: parsing is bounded in depth, its time and memory are linear
// in the message's size, which the reader of the socket bounds.
#ifndef TOOLS_COLLECTOR_CONTROL_MESSAGES_H_
#define TOOLS_COLLECTOR_CONTROL_MESSAGES_H_

#include <rapidjson/document.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/collector/control/service.h"
#include "tools/common/json_text.h"

namespace collector {

inline constexpr char kControlPath[] = "/run/nettraced/control";
inline constexpr char kControlInterface[] = "net.nettrace.Collector";
inline constexpr char kVarlinkInterface[] = "org.varlink.service";
// Bytes of a message. A request of somebody who may only look has no long text in it.
inline constexpr std::size_t kMaxLookRequest = std::size_t{16} << 10;
inline constexpr std::size_t kMaxRequest = std::size_t{1} << 20;
inline constexpr std::size_t kMaxReply = std::size_t{64} << 20;
// Entries of SessionStatus::losses that are sent: the largest. What is not there of `lost` was lost
// elsewhere.
inline constexpr std::size_t kMaxLossesSent = 100;

// What the two interfaces have, in varlink's language; "" for another name.
std::string_view InterfaceDescription(std::string_view interface);

// The JSON object that a message is, without its NUL.
absl::StatusOr<rapidjson::Document> ParseMessage(std::string_view message);

// Names of errors, with the interface's, and back. A code that has no name is sent as "Failed",
// a name that is not known becomes Unknown.
std::string ErrorNameOf(absl::StatusCode code);
absl::StatusCode CodeOfErrorName(std::string_view name);

// Text of a state: "running", "suspended", "failed", "stopped".
std::string_view StateName(SessionStatus::State state);
// InvalidArgument names the states that there are.
absl::StatusOr<SessionStatus::State> ParseState(std::string_view name);

// Writes an object; its keys are those of the type Session in the interface's description.
void PutSession(tools::JsonWriter* json, const SessionStatus& session);
// The opposite. Members that are missing keep their defaults, those that are not known are ignored:
// the two ends need not be of one version. InvalidArgument names a member of the wrong type.
absl::StatusOr<SessionStatus> ParseSession(const rapidjson::Value& json);

}  // namespace collector

#endif  // TOOLS_COLLECTOR_CONTROL_MESSAGES_H_
