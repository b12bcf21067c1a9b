// A part of the interface of OpenTelemetry C++ for tests; see stand_ins/opentelemetry.h.
#include "tests/unit/eventheader/bridges/stand_ins/opentelemetry.h"
