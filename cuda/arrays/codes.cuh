/*-------------------------------------------------------------------------
 *
 * codes.cuh
 *	  The elements of arrays as unsigned codes in the same order.
 *
 * Elements of 1, 2 and 4 bytes have codes of type u32, those of 8 bytes u64,
 * those of 16 bytes Wide.  The type of the elements is a set of constants at run
 * time (CodeMap), so that a kernel exists once for each type of code only.
 *
 * Let x be an element's bits, moved up to the top of the code type, and
 *
 *	  y	   = x ^ (x < 0 ? fold : 0)		(x taken as signed)
 *	  code = y * sign + bias			(modulo 2^32 or 2^64)
 *
 * For integers fold is 0.  For floats it has all bits but the sign: as a signed
 * number y then is in the order of the floats, except that NaNs with a sign are
 * at the bottom.  sign and bias give code 0 to -infinity, the lowest element that
 * is not such a NaN.  These NaNs wrap around to the top, where the other NaNs
 * are.  For a descending order sign is -1, which with the bias makes the
 * complement.  Every step can be undone: an element gets its own bits back.
 *
 * A multiplication by sign replaces an exclusive or, because the processor multiplies and compares in
 * different units, side by side.
 *
 * Elements of 16 bytes are in the order of memcmp(): they are read as big-endian
 * numbers, and complemented for a descending order.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_ARRAYS_CODES_CUH
#define GS_ARRAYS_CODES_CUH

#include "common/common.cuh"

namespace gpusort
{

using u16 = uint16_t;

// 16 bytes as a number, the first byte highest.
struct alignas(16) Wide
{
  u64 high;
  u64 low;

  __host__ __device__ friend bool operator<(const Wide &a, const Wide &b)
  {
    return a.high < b.high || (a.high == b.high && a.low < b.low);
  }
  __host__ __device__ friend bool operator==(const Wide &a, const Wide &b)
  {
    return a.high == b.high && a.low == b.low;
  }
};

// The map from elements to codes, as in the head of this file.
struct CodeMap
{
  u64 fold;
  u64 sign; // 1, or all ones
  u64 bias;
  u32 bytes; // of an element
};

inline CodeMap code_map(GsElem elem, bool descending)
{
  u32 bytes = gs_elem_bytes(elem);
  bool narrow = bytes <= 4;
  bool is_signed = elem == GS_ELEM_INT2 || elem == GS_ELEM_INT4 || elem == GS_ELEM_INT8;
  bool is_float = elem == GS_ELEM_FLOAT4 || elem == GS_ELEM_FLOAT8;
  u64 top = narrow ? u64{1} << 31 : u64{1} << 63;
  u64 infinity = narrow ? 0x007fffff : 0x000fffffffffffff; // -infinity as an ordered number
  u64 bias = is_float ? top - infinity : is_signed ? top : 0;

  return {is_float ? top - 1 : 0, descending ? ~u64{0} : 1, descending ? ~bias : bias, bytes};
}

// The greatest code.
template <typename Code>
__host__ __device__ constexpr Code highest_code()
{
  if constexpr (sizeof(Code) == 16)
    return {~u64{0}, ~u64{0}};
  else
    return ~Code{0};
}

// Calls f with a code of the type of such elements.
template <typename F>
auto with_code(GsElem elem, F f)
{
  switch (gs_elem_bytes(elem))
  {
  case 16:
    return f(Wide{});
  case 8:
    return f(u64{});
  default: // 1, 2 and 4; GsElem has no other widths
    return f(u32{});
  }
}

__device__ __forceinline__ u32 encode(u32 x, const CodeMap &map)
{
  u32 y = x ^ (static_cast<u32>(static_cast<int32_t>(x) >> 31) & static_cast<u32>(map.fold));

  return y * static_cast<u32>(map.sign) + static_cast<u32>(map.bias);
}

__device__ __forceinline__ u32 decode(u32 code, const CodeMap &map)
{
  u32 sign = static_cast<u32>(map.sign);
  u32 y = code * sign - static_cast<u32>(map.bias) * sign;

  return y ^ (static_cast<u32>(static_cast<int32_t>(y) >> 31) & static_cast<u32>(map.fold));
}

__device__ __forceinline__ u64 encode(u64 x, const CodeMap &map)
{
  u64 y = x ^ (static_cast<u64>(static_cast<long long>(x) >> 63) & map.fold);

  return y * map.sign + map.bias;
}

__device__ __forceinline__ u64 decode(u64 code, const CodeMap &map)
{
  u64 y = (code - map.bias) * map.sign;

  return y ^ (static_cast<u64>(static_cast<long long>(y) >> 63) & map.fold);
}

__device__ __forceinline__ Wide encode(const Wide &x, const CodeMap &map)
{
  u64 flip = map.sign == 1 ? 0 : ~u64{0};

  return {x.high ^ flip, x.low ^ flip};
}

__device__ __forceinline__ Wide decode(const Wide &code, const CodeMap &map)
{
  return encode(code, map);
}

// The bits of an element as they are in memory.
template <typename Code, typename T>
__device__ __forceinline__ Code load_raw(const T *array, u32 i)
{
  return static_cast<Code>(array[i]);
}

// Arrays begin at multiples of 8, which is not enough to load 16 bytes at once.
template <>
__device__ __forceinline__ Wide load_raw<Wide, Wide>(const Wide *array, u32 i)
{
  const u64 *words = reinterpret_cast<const u64 *>(array) + 2 * u64{i};

  return {words[0], words[1]};
}

// The same bits as a number, at the top of the code type.
template <typename T, typename Code>
__device__ __forceinline__ Code number_of(Code raw)
{
  return raw << 8 * (sizeof(Code) - sizeof(T));
}

template <>
__device__ __forceinline__ Wide number_of<Wide, Wide>(Wide raw)
{
  return {swap_bytes(raw.high), swap_bytes(raw.low)};
}

template <typename Code, typename T>
__device__ __forceinline__ Code load_number(const T *array, u32 i)
{
  return number_of<T>(load_raw<Code>(array, i));
}

// Writes a number back as the bits of an element.
template <typename Code, typename T>
__device__ __forceinline__ void store_number(T *array, u32 i, const Code &x)
{
  array[i] = static_cast<T>(x >> 8 * (sizeof(Code) - sizeof(T)));
}

template <>
__device__ __forceinline__ void store_number<Wide, Wide>(Wide *array, u32 i, const Wide &x)
{
  u64 *words = reinterpret_cast<u64 *>(array) + 2 * u64{i};

  words[0] = swap_bytes(x.high);
  words[1] = swap_bytes(x.low);
}

// Reads element i of an array as a code.
__device__ __forceinline__ void load_code(const char *array, u32 i, const CodeMap &map, u32 *code)
{
  u32 x = map.bytes == 4   ? load_number<u32>(reinterpret_cast<const u32 *>(array), i)
          : map.bytes == 2 ? load_number<u32>(reinterpret_cast<const u16 *>(array), i)
                           : load_number<u32>(reinterpret_cast<const u8 *>(array), i);

  *code = encode(x, map);
}

template <typename Code>
__device__ __forceinline__ void load_code(const char *array, u32 i, const CodeMap &map, Code *code)
{
  *code = encode(load_number<Code>(reinterpret_cast<const Code *>(array), i), map);
}

// Writes a code back as element i of an array.
__device__ __forceinline__ void store_code(char *array, u32 i, const CodeMap &map, u32 code)
{
  u32 x = decode(code, map);

  if (map.bytes == 4)
    store_number(reinterpret_cast<u32 *>(array), i, x);
  else if (map.bytes == 2)
    store_number(reinterpret_cast<u16 *>(array), i, x);
  else
    store_number(reinterpret_cast<u8 *>(array), i, x);
}

template <typename Code>
__device__ __forceinline__ void store_code(char *array, u32 i, const CodeMap &map, const Code &code)
{
  store_number(reinterpret_cast<Code *>(array), i, decode(code, map));
}

// The type by which CUB sorts codes.
template <typename Code>
struct RadixKey
{
  using type = Code;
};

template <>
struct RadixKey<Wide>
{
  using type = unsigned __int128;
};

template <typename Code>
__device__ __forceinline__ Code radix_key(const Code &code)
{
  return code;
}

__device__ __forceinline__ unsigned __int128 radix_key(const Wide &code)
{
  return static_cast<unsigned __int128>(code.high) << 64 | code.low;
}

__device__ __forceinline__ void from_radix_key(unsigned __int128 key, Wide *code)
{
  *code = {static_cast<u64>(key >> 64), static_cast<u64>(key)};
}

template <typename Code>
__device__ __forceinline__ void from_radix_key(Code key, Code *code)
{
  *code = key;
}

// Makes the compiler compute a value here, even if only a later branch needs it.
// Such a branch is then short enough to become a predicated instruction.
__device__ __forceinline__ void materialize(u32 &x)
{
  asm volatile("" : "+r"(x));
}

__device__ __forceinline__ void materialize(int &x)
{
  asm volatile("" : "+r"(x));
}

__device__ __forceinline__ void materialize(u64 &x)
{
  asm volatile("" : "+l"(x));
}

__device__ __forceinline__ void materialize(Wide &x)
{
  materialize(x.high);
  materialize(x.low);
}

__device__ __forceinline__ Wide shuffle_xor(const Wide &x, u32 mask)
{
  return {__shfl_xor_sync(~0u, x.high, mask), __shfl_xor_sync(~0u, x.low, mask)};
}

} // namespace gpusort

#endif // GS_ARRAYS_CODES_CUH
