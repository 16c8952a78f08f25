/* SPDX-License-Identifier: Apache-2.0
 *
 * Text as XML 1.0 takes it.
 */
#ifndef HARNESS_XML_TEXT_H
#define HARNESS_XML_TEXT_H

#include <stdio.h>

/* Text for an element or a value in quotes. What XML 1.0 can't hold becomes '?'; line ends survive only as references.
 */
void xml_put_text(FILE *file, const char *text);
/* ' name="value"'. */
void xml_put_attribute(FILE *file, const char *name, const char *value);

#endif
