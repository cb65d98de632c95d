/**
 * Version of the headers and of the library.
 */
#ifndef ZEROCOMM_VERSION_H
#define ZEROCOMM_VERSION_H

#include <zerocomm/export.h>

#include <stdint.h>

ZC_BEGIN_DECLS

#define ZC_VERSION_MAJOR 0
#define ZC_VERSION_MINOR 1
#define ZC_VERSION_PATCH 0
/** One number that grows with every version. */
#define ZC_VERSION (ZC_VERSION_MAJOR * 10000 + ZC_VERSION_MINOR * 100 + ZC_VERSION_PATCH)

/** ZC_VERSION of the library that is loaded. */
ZC_API int32_t zc_version(void);

/** The same as text: "0.1.0". Never NULL. */
ZC_API const char *zc_version_text(void);

ZC_END_DECLS

#endif
