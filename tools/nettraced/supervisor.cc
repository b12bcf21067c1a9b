#include "tools/nettraced/supervisor.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace nettraced {
namespace {

std::string_view VariableOf(std::string_view lines) { return lines.substr(0, lines.find('=')); }

}  // namespace

Supervisor::Supervisor(const char* socket) {
  const std::string_view name = socket == nullptr ? "" : socket;
  if (name.size() < 2 || name.size() >= sizeof address_.sun_path) return;
  if (name.front() != '/' && name.front() != '@') return;
  address_.sun_family = AF_UNIX;
  std::copy(name.begin(), name.end(), std::begin(address_.sun_path));
  if (name.front() == '@') address_.sun_path[0] = '\0';
  address_size_ = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  socket_ = base::UniqueFd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

void Supervisor::Notify(std::string lines) {
  if (address_size_ == 0) return;
  std::erase_if(kept_, [variable = VariableOf(lines)](const std::string& kept) {
    return VariableOf(kept) == variable;
  });
  kept_.push_back(std::move(lines));
  Retry();
}

void Supervisor::Retry() {
  const auto refused = std::find_if_not(kept_.begin(), kept_.end(),
                                        [this](const std::string& lines) { return Send(lines); });
  kept_.erase(kept_.begin(), refused);
}

bool Supervisor::Send(std::string_view lines) const {
  return sendto(socket_.get(), lines.data(), lines.size(), MSG_NOSIGNAL,
                reinterpret_cast<const sockaddr*>(&address_), address_size_) >= 0;
}

}  // namespace nettraced
