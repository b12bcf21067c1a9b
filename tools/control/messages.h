// The messages of the control socket, for the client and the server: the descriptions of the
// interfaces, the names of errors, and SessionStatus and ServicesStatus as JSON. As in varlink, a
// message is a JSON object followed by a NUL.
//
// Received messages are untrusted. Parsing is limited in depth, and its time and memory are linear
// in the size of the message, which the reader of the socket limits.
#ifndef TOOLS_CONTROL_MESSAGES_H_
#define TOOLS_CONTROL_MESSAGES_H_

#include <rapidjson/document.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/base/json_text.h"
#include "tools/control/service.h"

namespace control {

inline constexpr char kControlPath[] = "/run/nettraced/control";
inline constexpr char kControlInterface[] = "net.nettrace.Collector";
inline constexpr char kVarlinkInterface[] = "org.varlink.service";
// Limits of messages, in bytes. Requests of users that may only view contain no long text.
inline constexpr std::size_t kMaxLookRequest = std::size_t{16} << 10;
inline constexpr std::size_t kMaxRequest = std::size_t{1} << 20;
inline constexpr std::size_t kMaxReply = std::size_t{64} << 20;
// Maximum number of entries of SessionStatus::losses in a message. Only the largest are sent, so
// their sum may be less than `lost`.
inline constexpr std::size_t kMaxLossesSent = 100;

// Returns the description of one of the two interfaces in varlink's language; "" for another name.
std::string_view InterfaceDescription(std::string_view interface);

// Returns the error of a client that cannot use a reply. The message has the reason and a remedy.
absl::Status InvalidReply(std::string_view why);

// Parses a message, which is without its NUL, as a JSON object. Fails with InvalidArgument if it is
// not one, or if arrays and objects are nested too deeply.
absl::StatusOr<rapidjson::Document> ParseMessage(std::string_view message);

// Converts between error codes and names, which include the name of the interface. A code without a
// name becomes "Failed", and an unknown name becomes Unknown.
std::string ErrorNameOf(absl::StatusCode code);
absl::StatusCode CodeOfErrorName(std::string_view name);

// Returns the text of a state: "running", "suspended", "failed", "stopped".
std::string_view StateName(SessionStatus::State state);
// Returns the state with this name. Fails with InvalidArgument, and names all states, if there is
// none.
absl::StatusOr<SessionStatus::State> ParseState(std::string_view name);

// Writes an object with the keys of the type Session in the interface's description.
void PutSession(base::JsonWriter* json, const SessionStatus& session);
// Reads what PutSession writes. Missing members keep their defaults, and unknown ones are ignored,
// because the two ends may have different versions. Fails with InvalidArgument if `json` is not an
// object, or, with the name of the member, if a member has the wrong type or an unknown state.
absl::StatusOr<SessionStatus> ParseSession(const rapidjson::Value& json);
// Writes the members of the reply of Services into the open object.
void PutServices(base::JsonWriter* json, const ServicesStatus& services);
// Reads what PutServices writes, as ParseSession does.
absl::StatusOr<ServicesStatus> ParseServices(const rapidjson::Value& json);

}  // namespace control

#endif  // TOOLS_CONTROL_MESSAGES_H_
