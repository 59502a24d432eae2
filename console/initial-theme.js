// Applies the saved theme before the page is painted. It is a classic script, because modules run after the first paint.
{
  const theme = localStorage.getItem('dendro.theme');
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
}
