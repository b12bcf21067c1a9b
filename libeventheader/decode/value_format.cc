// Which formats suit which values.
#include "eventheader/decoder.h"

namespace eh {
namespace {

// kFixed: a value of one of certain sizes, which an empty one lacks.
enum class Shape { kFixed, kText, kBytes, kUnknown };

Shape ShapeOf(Format format) noexcept {
  switch (format) {
    case Format::kString8:
    case Format::kStringUtf:
    case Format::kStringUtfBom:
    case Format::kStringXml:
    case Format::kStringJson:
      return Shape::kText;
    case Format::kHexBytes:
      return Shape::kBytes;
    case Format::kUnsignedInt:
    case Format::kSignedInt:
    case Format::kHexInt:
    case Format::kErrno:
    case Format::kPid:
    case Format::kTime:
    case Format::kBoolean:
    case Format::kFloat:
    case Format::kUuid:
    case Format::kPort:
    case Format::kIpAddress:
      return Shape::kFixed;
    default:
      return Shape::kUnknown;
  }
}

// Whether a value of `size` bytes can be in `format`, a format of fixed size.
bool SuitsSize(Format format, std::size_t size) noexcept {
  switch (format) {
    case Format::kUnsignedInt:
    case Format::kSignedInt:
    case Format::kHexInt:
      return size == 1 || size == 2 || size == 4 || size == 8;
    case Format::kErrno:
    case Format::kPid:
      return size == 4;
    case Format::kTime:
    case Format::kFloat:
      return size == 4 || size == 8;
    case Format::kBoolean:
      return size == 1 || size == 2 || size == 4;
    case Format::kUuid:
      return size == 16;
    case Format::kPort:
      return size == 2;
    case Format::kIpAddress:
      return size == 4 || size == 16;
    default:
      return false;
  }
}

// A character: a text format on an integer of its code unit's size.
bool IsCharacter(Encoding encoding, Format format) noexcept {
  if (format != Format::kString8 && format != Format::kStringUtf) return false;
  return encoding == Encoding::kValue8 ||
         (format == Format::kStringUtf &&
          (encoding == Encoding::kValue16 || encoding == Encoding::kValue32));
}

}  // namespace

Format ValueFormat(Encoding encoding, Format format, std::size_t size) noexcept {
  if (format == Format::kIpAddressObsolete) format = Format::kIpAddress;
  const Format own = DefaultFormat(encoding);
  const Shape shape = ShapeOf(format);
  if (shape == Shape::kBytes) return format;
  switch (encoding) {
    case Encoding::kStruct:
    case Encoding::kInvalid:
      return own;
    case Encoding::kValue8:
    case Encoding::kValue16:
    case Encoding::kValue32:
    case Encoding::kValue64:
    case Encoding::kValue128:
      return SuitsSize(format, size) || IsCharacter(encoding, format) ? format : own;
    case Encoding::kStringLength16Char8:
    case Encoding::kBinaryLength16Char8:
      if (shape == Shape::kText) return format;
      if (shape == Shape::kUnknown) return own;
      if (size == 0) return Format::kDefault;
      return SuitsSize(format, size) ? format : own;
    case Encoding::kZStringChar8:
      return shape == Shape::kText ? format : own;
    default:
      // Latin-1 has units of 8 bits.
      return shape == Shape::kText && format != Format::kString8 ? format : own;
  }
}

}  // namespace eh
