// A service that executes the lines on its standard input and answers each with a line, for tests
// that follow a process from its start to its end.
#include <eventheader/eh.h>
#include <grp.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>

namespace {

extern constinit eh::Provider provider;
constexpr eh::Event<provider, "Said", eh::Traits{.keyword = 1}, eh::Field<"text", std::string_view>>
    said;

// Writes before main and after it, when static objects are constructed and destroyed.
struct Early {
  Early() noexcept : result(said.Write("from a static constructor")) {}
  ~Early() { said.Write("from a static destructor"); }
  eh::WriteResult result;
};
const Early early;

constinit eh::Provider provider("Vm_Puppet");

const char* Text(eh::WriteResult result) {
  switch (result) {
    case eh::WriteResult::kWritten:
      return "written";
    case eh::WriteResult::kDisabled:
      return "disabled";
    default:
      return "failed";
  }
}

int Descriptors() {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    count +=
        std::filesystem::read_symlink(entry.path(), error).native().ends_with("user_events_data");
  }
  return count;
}

std::string Do(const std::string& what, const std::string& with, char** argv) {
  if (what == "write") return Text(said.Write(with));
  if (what == "enabled") return said.enabled() ? "yes" : "no";
  if (what == "status") return std::to_string(provider.status());
  if (what == "remedy") return eh::RegistrationErrorText(provider.status());
  if (what == "retry") return std::to_string(with == "all" ? eh::RetryAll() : provider.Retry());
  if (what == "descriptors") return std::to_string(Descriptors());
  if (what == "user") {  // Becomes the user with this id, in the group with the same id only.
    const auto id = static_cast<unsigned>(std::stoul(with));
    return setgroups(0, nullptr) == 0 && setgid(id) == 0 && setuid(id) == 0 ? "done" : "failed";
  }
  if (what == "early") return Text(early.result);
  if (what == "exec") execv("/proc/self/exe", argv);
  if (what == "list") {  // Executes a program that lists the descriptors that it inherits.
    execl("/bin/sh", "sh", "-c", "echo $(readlink /proc/self/fd/*)", nullptr);
  }
  return "?";
}

}  // namespace

int main(int, char** argv) {
  std::string line;
  std::puts("ready");
  std::fflush(stdout);
  for (char c; read(STDIN_FILENO, &c, 1) == 1;) {
    if (c != '\n') {
      line += c;
      continue;
    }
    const std::size_t space = std::min(line.find(' '), line.size());
    const std::string with = line.substr(std::min(space + 1, line.size()));
    std::puts(Do(line.substr(0, space), with, argv).c_str());
    std::fflush(stdout);
    line.clear();
  }
  return 0;
}
