// Call sites that are compiled and measured, but not run: EVENTS events (1 or 9), and SITES calls
// of the first event (1 or 9). With PLAIN_CALL, the sites call a plain function instead, which is
// the minimum for a call with these arguments.
#include <eventheader/eh.h>

#include <cstdint>
#include <string>
#include <string_view>

struct Request {
  std::int32_t number, status, port, bytes, count;
  std::string path, host, agent;
};

namespace {

inline constinit eh::Provider provider("Bench_CallSites");

template <char kDigit>
constexpr eh::FixedString<7> EventName() noexcept {
  eh::FixedString<7> name("Event_");
  name.text[5] = kDigit;
  return name;
}

template <char kDigit>
constexpr eh::Event<provider, EventName<kDigit>(), eh::Traits{.keyword = 1},
                    eh::Field<"number", std::int32_t>, eh::Field<"status", std::int32_t>,
                    eh::Field<"port", std::int32_t>, eh::Field<"bytes", std::int32_t>,
                    eh::Field<"count", std::int32_t>, eh::Field<"path", std::string_view>,
                    eh::Field<"host", std::string_view>, eh::Field<"agent", std::string_view>>
    event [[maybe_unused]];

}  // namespace

void Plain(std::int32_t, std::int32_t, std::int32_t, std::int32_t, std::int32_t, std::string_view,
           std::string_view, std::string_view);

#ifdef PLAIN_CALL
#define WRITE(DIGIT) Plain
#else
#define WRITE(DIGIT) event<DIGIT>.Write
#endif
// Each site has a different number, because compilers merge identical functions.
#define SITE(NUMBER, DIGIT)                                                             \
  void Site##NUMBER(const Request& r) {                                                 \
    WRITE(DIGIT)                                                                        \
    (r.number + (NUMBER), r.status, r.port, r.bytes, r.count, r.path, r.host, r.agent); \
  }

SITE(0, '0')
#if SITES == 9
SITE(1, '0')
SITE(2, '0')
SITE(3, '0')
SITE(4, '0')
SITE(5, '0')
SITE(6, '0')
SITE(7, '0')
SITE(8, '0')
#endif
#if EVENTS == 9
SITE(11, '1')
SITE(12, '2')
SITE(13, '3')
SITE(14, '4')
SITE(15, '5')
SITE(16, '6')
SITE(17, '7')
SITE(18, '8')
#endif
