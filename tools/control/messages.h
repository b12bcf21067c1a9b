// The messages of the control socket, for the client and the server: the descriptions of the
// interfaces, the names of errors, and SessionStatus and ServicesStatus as JSON. As in varlink, a
// message is a JSON object followed by a NUL.
//
// Received messages are untrusted. Parsing is limited in depth. Its time and memory are linear in
// the size of the message, which the reader of the socket limits.
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
// Maximum sizes of messages, in bytes. kMaxLookRequest applies to users that may only view
// sessions: none of their requests contains a long text. kMaxRequest applies to users that may
// change sessions, because they can send settings.
inline constexpr std::size_t kMaxLookRequest = std::size_t{16} << 10;
inline constexpr std::size_t kMaxRequest = std::size_t{1} << 20;
inline constexpr std::size_t kMaxReply = std::size_t{64} << 20;
// Maximum number of entries of SessionStatus::losses in a message. Only the largest losses are
// sent, so their sum may be less than SessionStatus::lost.
inline constexpr std::size_t kMaxLossesSent = 100;

// Returns the description of kControlInterface or kVarlinkInterface in varlink's language; "" for
// another name.
std::string_view InterfaceDescription(std::string_view interface);

// Returns the status with which a client rejects a reply. The message has the reason and a remedy.
absl::Status InvalidReply(std::string_view why);

// Parses a message without its NUL as a JSON object. Fails with InvalidArgument if the message is
// not a JSON object in UTF-8, or if more than 16 arrays and objects are nested.
absl::StatusOr<rapidjson::Document> ParseMessage(std::string_view message);

// Convert between status codes and names of errors, which begin with the name of the interface.
// Codes without a name have the name kControlInterface.Failed. Names that are not known have the
// code Unknown.
std::string ErrorNameOf(absl::StatusCode code);
absl::StatusCode CodeOfErrorName(std::string_view name);

// Returns the text of a state: "running", "suspended", "failed", "stopped".
std::string_view StateName(SessionStatus::State state);
// Returns the state with this name. If no state has this name, fails with InvalidArgument and a
// message that lists all states.
absl::StatusOr<SessionStatus::State> ParseState(std::string_view name);

// Writes an object with the keys of the type Session in the interface's description.
void PutSession(base::JsonWriter* json, const SessionStatus& session);
// Reads what PutSession writes. Missing members keep their defaults, and unknown members are
// ignored, because the client and the daemon may have different versions. Fails with
// InvalidArgument if `json` is not an object, or if a member has the wrong type or an unknown
// state. The message names the member.
absl::StatusOr<SessionStatus> ParseSession(const rapidjson::Value& json);
// Writes the parameters of the reply to the method Services into the object that is open in `json`.
void PutServices(base::JsonWriter* json, const ServicesStatus& services);
// Reads what PutServices writes. Treats missing, unknown and wrong members like ParseSession.
absl::StatusOr<ServicesStatus> ParseServices(const rapidjson::Value& json);

}  // namespace control

#endif  // TOOLS_CONTROL_MESSAGES_H_
