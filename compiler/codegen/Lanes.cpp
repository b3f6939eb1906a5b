#include "compiler/codegen/Lanes.h"

#include "llvm/IR/IntrinsicsNVPTX.h"

#include <algorithm>

using llvm::Value;

namespace ds::codegen {

Value *Lanes::pointer(Value *address) {
  return b_.CreateIntToPtr(address, b_.getPtrTy(target_ == Target::Gpu ? 1 : 0));
}

Value *Lanes::at(Value *pointer, uint64_t bytes) {
  return bytes == 0 ? pointer : b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), pointer, bytes);
}

/// Words that are read or written at once: 1, 2 or 4.
static uint64_t wordsAtOnce(uint64_t words, uint64_t alignment) {
  uint64_t result = alignment / 4;
  while (words % result != 0)
    result /= 2;
  return result;
}

LaneValues Lanes::load(Value *from, DType type, size_t count, uint64_t alignment) {
  const auto elementBytes = uint64_t(byteSize(type));
  const uint64_t words = count * elementBytes / 4;
  llvm::SmallVector<Value *, 8> loaded;
  if (alignment < 4 || count * elementBytes % 4 != 0) { // element by element
    for (size_t k = 0; k < count; ++k) {
      llvm::Type *bits = b_.getIntNTy(unsigned(8 * elementBytes));
      Value *element = b_.CreateAlignedLoad(bits, at(from, k * elementBytes), llvm::Align(elementBytes));
      loaded.push_back(unpack({b_.CreateZExt(element, b_.getInt32Ty())}, type)[0]);
    }
    return loaded;
  }
  const uint64_t once = wordsAtOnce(words, alignment);
  for (uint64_t word = 0; word < words; word += once) {
    llvm::Type *bits = once == 1 ? static_cast<llvm::Type *>(b_.getInt32Ty())
                                 : llvm::FixedVectorType::get(b_.getInt32Ty(), unsigned(once));
    Value *several = b_.CreateAlignedLoad(bits, at(from, 4 * word), llvm::Align(4 * once));
    for (uint64_t k = 0; k < once; ++k)
      loaded.push_back(once == 1 ? several : b_.CreateExtractElement(several, k));
  }
  return unpack(loaded, type);
}

void Lanes::store(Value *to, DType type, const LaneValues &values, uint64_t alignment) {
  const auto elementBytes = uint64_t(byteSize(type));
  if (alignment < 4 || values.size() * elementBytes % 4 != 0) {
    for (size_t k = 0; k < values.size(); ++k) {
      llvm::Type *bits = b_.getIntNTy(unsigned(8 * elementBytes));
      Value *element = type == DType::Bool   ? b_.CreateZExt(values[k], bits)
                       : isNarrowFloat(type) ? narrowed(values[k], type)
                                             : b_.CreateBitCast(values[k], bits);
      b_.CreateAlignedStore(element, at(to, k * elementBytes), llvm::Align(elementBytes));
    }
    return;
  }
  const auto words = pack(values, type);
  const uint64_t once = wordsAtOnce(words.size(), alignment);
  for (uint64_t word = 0; word < words.size(); word += once) {
    Value *several = words[word];
    if (once > 1) {
      several = llvm::PoisonValue::get(llvm::FixedVectorType::get(b_.getInt32Ty(), unsigned(once)));
      for (uint64_t k = 0; k < once; ++k)
        several = b_.CreateInsertElement(several, words[word + k], k);
    }
    b_.CreateAlignedStore(several, at(to, 4 * word), llvm::Align(4 * once));
  }
}

LaneValues Lanes::unpack(llvm::ArrayRef<Value *> words, DType type) {
  LaneValues values;
  for (Value *word : words)
    if (type == DType::F32) {
      values.push_back(b_.CreateBitCast(word, b_.getFloatTy()));
    } else if (type == DType::BF16) {
      values.push_back(b_.CreateBitCast(b_.CreateShl(word, 16), b_.getFloatTy()));
      values.push_back(b_.CreateBitCast(b_.CreateAnd(word, 0xffff0000), b_.getFloatTy()));
      wordsOf(type).try_emplace({values.end()[-2], values.back()}, word);
    } else if (type == DType::F16) {
      Value *halves = b_.CreateBitCast(word, llvm::FixedVectorType::get(b_.getHalfTy(), 2));
      for (uint64_t k = 0; k < 2; ++k)
        values.push_back(b_.CreateFPExt(b_.CreateExtractElement(halves, k), b_.getFloatTy()));
      wordsOf(type).try_emplace({values.end()[-2], values.back()}, word);
    } else {
      for (unsigned k = 0; k < 4; ++k)
        values.push_back(b_.CreateICmpNE(b_.CreateAnd(word, uint64_t(0xff) << 8 * k), b_.getInt32(0)));
    }
  return values;
}

llvm::SmallVector<Value *, 8> Lanes::pack(const LaneValues &values, DType type) {
  llvm::SmallVector<Value *, 8> words;
  if (type == DType::F32)
    for (Value *value : values)
      words.push_back(b_.CreateBitCast(value, b_.getInt32Ty()));
  else if (isNarrowFloat(type))
    for (size_t k = 0; k < values.size(); k += 2)
      words.push_back(pair(values[k], values[k + 1], type));
  else
    for (size_t k = 0; k < values.size(); k += 4) {
      Value *word = b_.CreateZExt(values[k], b_.getInt32Ty());
      for (unsigned i = 1; i < 4; ++i)
        word = b_.CreateOr(word, b_.CreateShl(b_.CreateZExt(values[k + i], b_.getInt32Ty()), 8 * i));
      words.push_back(word);
    }
  return words;
}

LaneValues Lanes::rounded(const LaneValues &values, DType type) {
  LaneValues result;
  for (size_t k = 0; k + 1 < values.size(); k += 2)
    result.append(unpack({pair(values[k], values[k + 1], type)}, type));
  if (values.size() % 2 != 0)
    result.push_back(unpack({b_.CreateZExt(narrowed(values.back(), type), b_.getInt32Ty())}, type)[0]);
  return result;
}

Value *Lanes::pair(Value *low, Value *high, DType type) {
  if (Value *word = wordsOf(type).lookup({low, high}))
    return word;
  const auto word = [&](Value *half) { return b_.CreateZExt(narrowed(half, type), b_.getInt32Ty()); };
  if (target_ == Target::Host)
    return b_.CreateOr(word(low), b_.CreateShl(word(high), 16));
  const auto rounds = type == DType::BF16 ? llvm::Intrinsic::nvvm_ff2bf16x2_rn : llvm::Intrinsic::nvvm_ff2f16x2_rn;
  return b_.CreateBitCast(b_.CreateIntrinsic(rounds, {high, low}), b_.getInt32Ty());
}

Value *Lanes::narrowed(Value *value, DType type) {
  if (type == DType::F16)
    return b_.CreateBitCast(b_.CreateFPTrunc(value, b_.getHalfTy()), b_.getInt16Ty());
  if (target_ == Target::Host)
    return b_.CreateTrunc(hostBits(value), b_.getInt16Ty());
  return b_.CreateBitCast(b_.CreateIntrinsic(llvm::Intrinsic::nvvm_f2bf16_rn, {value}), b_.getInt16Ty());
}

/// As kernels/BFloat16.h, where there is no instruction for it.
Value *Lanes::hostBits(Value *value) {
  Value *bits = b_.CreateBitCast(value, b_.getInt32Ty());
  Value *odd = b_.CreateAnd(b_.CreateLShr(bits, 16), 1);
  Value *nearest = b_.CreateLShr(b_.CreateAdd(bits, b_.CreateAdd(odd, b_.getInt32(0x7fff))), 16);
  Value *quiet = b_.CreateOr(b_.CreateLShr(bits, 16), 0x40);
  return b_.CreateSelect(b_.CreateFCmpUNO(value, value), quiet, nearest);
}

} // namespace ds::codegen
