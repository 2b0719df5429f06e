// SPDX-License-Identifier: GPL-2.0
/*
 * The layout of buffer tables as text: module parameter and debugfs file. Pure:
 * it also compiles in user space.
 */
#ifdef __KERNEL__
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/string.h>
#endif

#include "layout.h"

static bool layout_word_is(const char *w, size_t n, const char *name)
{
	return strlen(name) == n && !memcmp(w, name, n);
}

/* "key=123", n characters, to *v; false if it is something else or over 255 */
static bool layout_word_value(const char *w, size_t n, const char *key, u8 *v)
{
	size_t k = strlen(key);
	unsigned int val = 0;

	if (n <= k + 1 || memcmp(w, key, k) || w[k] != '=')
		return false;
	for (k++; k < n; k++) {
		if (w[k] < '0' || w[k] > '9')
			return false;
		val = val * 10 + (w[k] - '0');
		if (val > 255)
			return false;
	}
	*v = val;
	return true;
}

static int layout_parse_word(const char *w, size_t n, struct qhca_layout *l)
{
	u8 form;

	if (layout_word_is(w, n, "auto")) {
		l->form = QHCA_LAYOUT_AUTO;
		return 0;
	}
	for (form = QHCA_BUF_DIRECT; form <= QHCA_BUF_TREE; form++) {
		if (layout_word_is(w, n, qhca_form_name(form))) {
			l->form = form;
			return 0;
		}
	}
	if (layout_word_value(w, n, "hops", &l->hops) ||
	    layout_word_value(w, n, "page_shift", &l->page_shift) ||
	    layout_word_value(w, n, "table_shift", &l->table_shift))
		return 0;
	if (layout_word_is(w, n, "scope=user"))
		l->scope = QHCA_SCOPE_USER;
	else if (layout_word_is(w, n, "scope=kernel"))
		l->scope = QHCA_SCOPE_KERNEL;
	else if (layout_word_is(w, n, "scope=all"))
		l->scope = QHCA_SCOPE_USER | QHCA_SCOPE_KERNEL;
	else
		return -EINVAL;
	return 0;
}

/**
 * qhca_layout_parse - read a layout from text
 * @text: words separated by blanks: a form (auto if none is given), hops=N,
 *	page_shift=N, table_shift=N, scope=user|kernel|all
 * @l: result; untouched on error
 *
 * Return: 0, or -EINVAL for an unknown word or an impossible combination.
 */
int qhca_layout_parse(const char *text, struct qhca_layout *l)
{
	struct qhca_layout new = {
		.form = QHCA_LAYOUT_AUTO,
		.scope = QHCA_SCOPE_USER,
	};
	int err;

	for (;;) {
		size_t n;

		text += strspn(text, " \t\n");
		n = strcspn(text, " \t\n");
		if (!n)
			break;
		err = layout_parse_word(text, n, &new);
		if (err)
			return err;
		text += n;
	}
	err = qhca_layout_check(&new);
	if (err)
		return err;
	*l = new;
	return 0;
}

/**
 * qhca_layout_print - write a layout as text that qhca_layout_parse() takes
 * @l: layout
 * @buf: result, NUL-terminated
 * @size: bytes at @buf
 *
 * Return: characters written or, as snprintf() does, that were needed.
 */
int qhca_layout_print(const struct qhca_layout *l, char *buf, size_t size)
{
	const char *scope = "all";

	if (l->scope == QHCA_SCOPE_USER)
		scope = "user";
	else if (l->scope == QHCA_SCOPE_KERNEL)
		scope = "kernel";
	return snprintf(buf, size,
			"%s hops=%u page_shift=%u table_shift=%u scope=%s\n",
			qhca_form_name(l->form), l->hops, l->page_shift,
			l->table_shift, scope);
}

/* Returns 0 if the members of @l are consistent and in range, else -EINVAL. */
int qhca_layout_check(const struct qhca_layout *l)
{
	u8 max_hops;

	switch (l->form) {
	case QHCA_BUF_DIRECT:
	case QHCA_BUF_LIST:
		max_hops = 0;
		break;
	case QHCA_BUF_FLAT:
		max_hops = 1;
		break;
	case QHCA_BUF_TREE:
		max_hops = QHCA_BUF_HOPS_MAX;
		break;
	case QHCA_LAYOUT_AUTO:
		/* hops and table_shift require a form */
		max_hops = 0;
		break;
	default:
		return -EINVAL;
	}
	if (l->hops > max_hops)
		return -EINVAL;
	if (l->page_shift && (l->page_shift < QHCA_BUF_PAGE_SHIFT_MIN ||
			      l->page_shift > QHCA_BUF_PAGE_SHIFT_MAX))
		return -EINVAL;
	if (l->table_shift && (l->form != QHCA_BUF_TREE ||
			       l->table_shift < QHCA_BUF_TABLE_SHIFT_MIN ||
			       l->table_shift > QHCA_BUF_TABLE_SHIFT_MAX))
		return -EINVAL;
	if (!l->scope || l->scope & ~(QHCA_SCOPE_USER | QHCA_SCOPE_KERNEL))
		return -EINVAL;
	return 0;
}
