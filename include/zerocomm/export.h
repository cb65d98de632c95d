/**
 * Linkage marks of the public C interface.
 */
#ifndef ZEROCOMM_EXPORT_H
#define ZEROCOMM_EXPORT_H

#if defined(__cplusplus)
#define ZC_BEGIN_DECLS extern "C" {
#define ZC_END_DECLS }
#else
#define ZC_BEGIN_DECLS
#define ZC_END_DECLS
#endif

#if defined(__GNUC__)
/** Marks a function that the shared library exports. */
#define ZC_API __attribute__((visibility("default")))
/** Marks a result that must not be ignored. */
#define ZC_NODISCARD __attribute__((warn_unused_result))
#else
#define ZC_API
#define ZC_NODISCARD
#endif

#endif
