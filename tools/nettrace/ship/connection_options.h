// The options of commands that send requests to an OTLP receiver.
#ifndef TOOLS_NETTRACE_SHIP_CONNECTION_OPTIONS_H_
#define TOOLS_NETTRACE_SHIP_CONNECTION_OPTIONS_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tools/nettrace/export/otlp/log_encoder.h"
#include "tools/nettrace/ship/delivery.h"
#include "tools/nettrace/ship/http_client.h"

namespace tools::ship {

struct ConnectionOptions {
  HttpSettings http;  // without the URL, the type and the encoding of the content
  std::string compression = "gzip";
  absl::Duration give_up = absl::ZeroDuration();  // 0: the default
  absl::Duration first_wait = absl::Seconds(1);
};

// Adds the options to the command, and returns them. `options` must outlive the command. `give_up`
// is the text that the help of --give-up shows as its default.
std::vector<CLI::Option*> AddConnectionOptions(CLI::App* command, ConnectionOptions* options,
                                               const std::string& give_up);

HttpSettings HttpSettingsFor(const ConnectionOptions& options, const std::string& url,
                             otlp::Encoding encoding);
// Returns the options of deliveries to `url`. If `once` is set, the command ends when all records
// are sent. A delivery then fails at once if the receiver is unreachable. After other errors, it
// retries, by default for a minute, and then fails.
DeliveryOptions DeliveryOptionsFor(const ConnectionOptions& options, const std::string& url,
                                   bool once);

}  // namespace tools::ship

#endif  // TOOLS_NETTRACE_SHIP_CONNECTION_OPTIONS_H_
