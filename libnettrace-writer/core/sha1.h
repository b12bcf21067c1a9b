// SHA-1 (RFC 3174), for the GUIDs that .NET derives from providers' names. SHA-1 is too weak for
// security.
#ifndef LIBNETTRACE_WRITER_CORE_SHA1_H_
#define LIBNETTRACE_WRITER_CORE_SHA1_H_

#include <array>
#include <cstddef>
#include <span>

namespace nettrace::internal {

std::array<std::byte, 20> Sha1(std::span<const std::byte> message);

}  // namespace nettrace::internal

#endif  // LIBNETTRACE_WRITER_CORE_SHA1_H_
