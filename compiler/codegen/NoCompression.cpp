//===- NoCompression.cpp - LLVM's compression, left out -------------------===//
//
// LLVM compresses debug sections of object files by zlib and zstd. PTX is text, and no object file is written or read:
// these definitions stand in front of those in libLLVMSupport.a, so that ds-opt needs neither library.
//
//===----------------------------------------------------------------------===//
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Compression.h"
#include "llvm/Support/Error.h"

#include <cstdint>

namespace llvm::compression {

using Bytes = ArrayRef<uint8_t>;
using Buffer = SmallVectorImpl<uint8_t>;

static Error refused() { return createStringError("compression is left out"); }

const char *getReasonIfUnsupported(Format) { return "compression is left out"; }
void compress(Params, Bytes, Buffer &) { llvm_unreachable("compression is left out"); }
Error decompress(DebugCompressionType, Bytes, uint8_t *, size_t) { return refused(); }
Error decompress(Format, Bytes, Buffer &, size_t) { return refused(); }
Error decompress(DebugCompressionType, Bytes, Buffer &, size_t) { return refused(); }

namespace zlib {
bool isAvailable() { return false; }
void compress(Bytes, Buffer &, int) { llvm_unreachable("compression is left out"); }
Error decompress(Bytes, uint8_t *, size_t &) { return refused(); }
Error decompress(Bytes, Buffer &, size_t) { return refused(); }
} // namespace zlib

namespace zstd {
bool isAvailable() { return false; }
void compress(Bytes, Buffer &, int, bool) { llvm_unreachable("compression is left out"); }
Error decompress(Bytes, uint8_t *, size_t &) { return refused(); }
Error decompress(Bytes, Buffer &, size_t) { return refused(); }
} // namespace zstd

} // namespace llvm::compression
