#include "tools/nettrace/command/output_options.h"

#include <CLI/CLI.hpp>

#include "absl/algorithm/container.h"

namespace tools {

bool IsCompressedName(const std::string& path) { return path.ends_with(".zst"); }

void RefuseCompressedName(const std::string& path) {
  if (!IsCompressedName(path)) return;
  throw CLI::ValidationError("-o",
                             path + ": this output is never compressed; use a name without .zst");
}

void AddModeOption(CLI::App* command, const std::string& otherwise,
                   const std::function<void(mode_t)>& set) {
  command->add_option_function<std::string>(
      "--mode",
      [set](const std::string& text) {
        const bool is_mode = !text.empty() && text.size() <= 4 &&
                             (text.size() < 4 || text[0] == '0') &&
                             absl::c_all_of(text, [](char c) { return c >= '0' && c <= '7'; });
        if (!is_mode)
          throw CLI::ValidationError("--mode", "invalid mode \"" + text + "\"; example: 0640");
        set(static_cast<mode_t>(std::stoul(text, nullptr, 8)));
      },
      "Mode of the output in octal, e.g. 0640; the umask is ignored. Default: " + otherwise);
}

}  // namespace tools
